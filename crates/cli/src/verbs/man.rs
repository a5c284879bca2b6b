//! `praxis man`: a page for `praxis` and one for each verb.
//! Invariant: made from the command line itself; verbs that help does not show have no page. Needs no store.
//! Called by `verbs::run`.

use std::fs;
use std::io;
use std::path::Path;

use aiws::error::{Code, Error};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::{print, shown_path};
use crate::args::{Cli, Man as Args};
use crate::exit::Exit;
use crate::render::json;

/// Runs it.
///
/// # Errors
///
/// `EXPORT_FAILED` when a page cannot be written.
pub fn run(args: &Args, as_json: bool) -> Result<Exit, Error> {
    let directory = &args.directory;
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    let pages = pages()?;
    for (name, page) in &pages {
        let path = directory.join(name);
        fs::write(&path, page).map_err(|error| failed(&path, &error))?;
    }
    let shown = shown_path(directory);
    if as_json {
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        let members = aiws::object! { "directory": shown, "pages": names };
        print(&json::object("man", members).to_string())?;
    } else {
        print(&format!("{} pages in {shown}", pages.len()))?;
    }
    Ok(Exit::Done)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let message = format!("{} was not written: {error}", shown_path(path));
    Error::new(Code::ExportFailed, message)
}

/// The command line without the verbs that help does not show.
pub(super) fn visible() -> Command {
    let whole = Cli::command();
    let shown: Vec<Command> = whole
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set())
        .cloned()
        .collect();
    // Verbs cannot be taken out of a command, so what stands above them is built anew around those that stay.
    let mut command = Command::new("praxis")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(whole.get_arguments().cloned())
        .subcommands(shown);
    if let Some(about) = whole.get_about() {
        command = command.about(about.clone());
    }
    if let Some(after) = whole.get_after_help() {
        command = command.after_help(after.clone());
    }
    command
}

/// The pages, by file name.
fn pages() -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut command = visible();
    command.build();
    let mut pages = vec![("praxis.1".to_owned(), page(&command, "praxis")?)];
    for verb in command.get_subcommands() {
        // clap's own verb `help` says what is said here.
        if verb.get_name() == "help" {
            continue;
        }
        let name = format!("praxis-{}", verb.get_name());
        pages.push((format!("{name}.1"), page(verb, &name)?));
    }
    Ok(pages)
}

/// One page. What stands after the options in the help is laid out in lines, and stays so.
fn page(command: &Command, name: &str) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let man = Man::new(command.clone().display_name(name.to_owned()))
        .title(name.to_uppercase())
        .source(format!("praxis {}", env!("CARGO_PKG_VERSION")))
        .manual("Praxis");
    let written = man
        .render_title(&mut out)
        .and_then(|()| man.render_name_section(&mut out))
        .and_then(|()| man.render_synopsis_section(&mut out))
        .and_then(|()| man.render_description_section(&mut out))
        .and_then(|()| man.render_options_section(&mut out));
    let subcommands = command.get_subcommands().next().is_some();
    let written = match subcommands {
        true => written.and_then(|()| man.render_subcommands_section(&mut out)),
        false => written,
    };
    written.map_err(|error| Error::new(Code::InternalStore, error.to_string()))?;
    if let Some(notes) = command.get_after_help() {
        out.extend_from_slice(b".SH NOTES\n.nf\n");
        for line in notes.to_string().lines() {
            out.extend_from_slice(literal(line).as_bytes());
            out.push(b'\n');
        }
        out.extend_from_slice(b".fi\n");
    }
    let see = match name {
        "praxis" => "praxis\\-code(1), praxis\\-explain(1)",
        _ => "praxis(1)",
    };
    out.extend_from_slice(format!(".SH \"SEE ALSO\"\n{see}\n").as_bytes());
    Ok(out)
}

/// A line as roff prints it: nothing in it is a command or an escape.
fn literal(line: &str) -> String {
    let plain = line.replace('\\', "\\e").replace('-', "\\-");
    match plain.starts_with(['.', '\'']) {
        true => format!("\\&{plain}"),
        false => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_that_help_shows_has_a_page_and_no_other() {
        let wanted = 1 + Cli::command()
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .count();
        let pages = pages().unwrap();
        assert_eq!(pages.len(), wanted);
        for (name, page) in &pages {
            let text = std::str::from_utf8(page).unwrap();
            assert!(text.is_ascii(), "{name}");
            for section in [
                ".TH ",
                ".SH NAME",
                ".SH SYNOPSIS",
                ".SH OPTIONS",
                ".SH NOTES",
                ".SH \"SEE ALSO\"",
            ] {
                assert!(text.contains(section), "{name} has no {section}");
            }
            // A line that begins with a dot is a request that roff knows.
            for line in text.lines().filter(|line| line.starts_with('.')) {
                let word: String = line[1..]
                    .chars()
                    .take_while(char::is_ascii_alphabetic)
                    .collect();
                let known = [
                    "TH", "SH", "SS", "TP", "PP", "RS", "RE", "nf", "fi", "ie", "el", "if", "br",
                    "B", "I", "IP",
                ];
                assert!(known.contains(&word.as_str()), "{name}: {line}");
            }
        }
    }

    #[test]
    fn the_visible_command_line_is_the_whole_one_but_for_hidden_verbs() {
        let (visible, whole) = (visible(), Cli::command());
        visible.clone().debug_assert();
        for verb in whole.get_subcommands() {
            let found = visible.find_subcommand(verb.get_name()).is_some();
            assert_eq!(found, !verb.is_hide_set(), "{}", verb.get_name());
        }
        assert_eq!(
            visible.get_arguments().count(),
            whole.get_arguments().count()
        );
    }

    #[test]
    fn lines_are_no_requests() {
        assert_eq!(literal(".x --y \\z"), "\\&.x \\-\\-y \\ez");
    }
}
