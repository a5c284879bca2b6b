//! How text is dressed: colours and the width of a terminal.
//! Invariant: no colour without a terminal, with NO_COLOR or at a dumb one; what is painted reads the same without its paint.
//! Called by everything that makes text for people.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use super::escape::columns_of;

/// How text is dressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether colours may be used.
    pub colour: bool,
    /// How many characters fit in a line.
    pub width: usize,
}

/// Colours, by what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It went well.
    Good,
    /// It went wrong, or somebody has to look.
    Bad,
    /// Somebody is waited for.
    Wait,
    /// It moves.
    Live,
    /// Less important than what is beside it.
    Dim,
    /// A heading.
    Strong,
    /// As it is.
    Plain,
}

/// The narrowest and the widest line that text is made for.
const WIDTHS: [usize; 2] = [40, 200];
/// The width without a terminal.
const NO_TERMINAL: usize = 100;

impl Style {
    /// What fits a stream of this program: colours at a terminal unless NO_COLOR is set, the terminal's width.
    #[must_use]
    pub fn of(stream: &(impl IsTerminal + AsFd)) -> Self {
        let terminal = stream.is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let columns = size(stream)
            .filter(|_| terminal)
            .map(|[columns, _]| columns);
        Self {
            colour: terminal && !no_colour && !dumb,
            width: columns.unwrap_or(NO_TERMINAL).clamp(WIDTHS[0], WIDTHS[1]),
        }
    }

    /// As [`Style::of`], but without a terminal lines are as long as they are: a program may look for their words.
    #[must_use]
    pub fn unbroken(stream: &(impl IsTerminal + AsFd)) -> Self {
        match stream.is_terminal() {
            true => Self::of(stream),
            false => Self::plain(usize::MAX),
        }
    }

    /// Plain text of a width, for files and tests.
    #[must_use]
    pub const fn plain(width: usize) -> Self {
        Self {
            colour: false,
            width,
        }
    }

    /// The text in a colour, where there are colours.
    #[must_use]
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Wait => "33",
            Tone::Live => "36",
            Tone::Dim => "2",
            Tone::Strong => "1",
            Tone::Plain => return text.to_owned(),
        };
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Columns and rows of a terminal; none where the stream is none, or does not say.
#[must_use]
pub fn size(stream: &impl AsFd) -> Option<[usize; 2]> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    let said = size.ws_col > 0 && size.ws_row > 0;
    said.then(|| [usize::from(size.ws_col), usize::from(size.ws_row)])
}

/// A painted line without its paint.
#[must_use]
pub fn unpainted(line: &str) -> String {
    let (mut plain, mut chars) = (String::new(), line.chars());
    while let Some(char) = chars.next() {
        if char == '\u{1b}' {
            // Of our own making, and so always closed.
            chars.by_ref().find(|char| *char == 'm');
        } else {
            plain.push(char);
        }
    }
    plain
}

/// How many columns a painted line takes: its colours take none.
#[must_use]
pub fn painted_width(line: &str) -> usize {
    unpainted(line).chars().map(columns_of).sum()
}

/// A painted line cut to `width` columns. Its last colour is closed, so that it does not run on.
#[must_use]
pub fn clip_painted(line: &str, width: usize) -> String {
    if painted_width(line) <= width {
        return line.to_owned();
    }
    let (mut short, mut taken, mut painted) = (String::new(), 0, false);
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        if char == '\u{1b}' {
            let code: String = chars.by_ref().take_while(|char| *char != 'm').collect();
            painted = code != "[0";
            short.push_str(&format!("\u{1b}{code}m"));
            continue;
        }
        taken += columns_of(char);
        if taken >= width {
            break;
        }
        short.push(char);
    }
    short.push('~');
    if painted {
        short.push_str("\u{1b}[0m");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paint_takes_no_room_and_is_closed() {
        let style = Style {
            colour: true,
            width: 80,
        };
        let painted = format!("{} and more", style.paint(Tone::Bad, "failed"));
        assert_eq!(painted_width(&painted), 15);
        assert_eq!(clip_painted(&painted, 15), painted);
        assert_eq!(clip_painted(&painted, 4), "\u{1b}[31mfai~\u{1b}[0m");
        assert_eq!(clip_painted(&painted, 9), "\u{1b}[31mfailed\u{1b}[0m a~");
        assert_eq!(Style::plain(80).paint(Tone::Bad, "failed"), "failed");
    }
}
