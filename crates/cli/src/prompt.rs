//! Questions to a person at a terminal.
//! Invariant: only a typed `y` or `yes` is a yes; the end of the input and anything else is not, and is asked again or left open.
//! Called by the verbs `code` and `resume` through `decider`.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often an answer that is neither yes nor no is asked for again.
const TRIES: usize = 3;

/// What a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A typed yes.
    Yes,
    /// A typed no.
    No,
    /// Nothing that counts: the end of the input, or no clear answer.
    Open,
}

/// Whether a person can be asked: input and output are a terminal.
#[must_use]
pub fn at_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The terminal's input for as long as a question stands: taken back, it ends.
pub struct Patient(Arc<AtomicBool>);

/// How long one look at the terminal waits, in milliseconds.
const LOOK_MS: i64 = 200;

impl Patient {
    /// The input until `taken_back` is set.
    #[must_use]
    pub fn new(taken_back: Arc<AtomicBool>) -> Self {
        Self(taken_back)
    }

    /// Whether there is something to read; not once the question was taken back.
    fn wait(&self) -> std::io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdin = std::io::stdin();
        let look = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK_MS * 1_000_000,
        };
        while !self.0.load(Ordering::Relaxed) {
            let mut looked = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut looked, Some(&look)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }
}

impl Read for Patient {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self.wait()? {
            true => std::io::stdin().lock().read(bytes),
            false => Ok(0),
        }
    }
}

/// Asks a question that is answered by yes or no. The question is text of this program alone.
///
/// # Errors
///
/// The system's error when the question cannot be written or the answer not be read.
pub fn ask(
    question: &str,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> std::io::Result<Answer> {
    for _ in 0..TRIES {
        write!(output, "{question} [y/n, Ctrl-D decides later] ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(output)?;
            return Ok(Answer::Open);
        }
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(Answer::Yes),
            "n" | "no" => return Ok(Answer::No),
            _ => writeln!(output, "Please type y or n.")?,
        }
    }
    Ok(Answer::Open)
}

/// Asks why, in a line; an empty one and the end of the input say nothing.
///
/// # Errors
///
/// As for [`ask`].
pub fn reason(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<Option<String>> {
    write!(output, "Why, in a line (empty says nothing)? ")?;
    output.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    let reason = line.trim();
    Ok((!reason.is_empty()).then(|| reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(typed: &str) -> (Answer, String) {
        let mut output = Vec::new();
        let answer = ask("Approve?", &mut typed.as_bytes(), &mut output).unwrap();
        (answer, String::from_utf8(output).unwrap())
    }

    #[test]
    fn only_a_clear_answer_counts() {
        assert_eq!(answer("y\n").0, Answer::Yes);
        assert_eq!(answer(" YES \n").0, Answer::Yes);
        assert_eq!(answer("n\n").0, Answer::No);
        assert_eq!(answer("").0, Answer::Open);
        assert_eq!(answer("\n\n\n").0, Answer::Open);
        let (second, shown) = answer("maybe\nno\n");
        assert_eq!(second, Answer::No);
        assert_eq!(shown.matches("[y/n, Ctrl-D").count(), 2);
    }
}
