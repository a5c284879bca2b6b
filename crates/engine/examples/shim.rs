//! The smallest host of a shim: `shim __shim FOLDER`, with a file that the command left as an output of its own.
use std::path::PathBuf;
use std::process::ExitCode;

use praxis_engine::shim::{self, Finish};

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(2).map(PathBuf::from) else {
        return ExitCode::from(2);
    };
    let exit = shim::main(&folder, |ending| {
        let made = folder.join("made");
        let secret = std::fs::read(&made).is_ok_and(|made| ending.mask.found_in(&made).is_some());
        Finish {
            outputs: Some(("made".to_owned(), made.clone()))
                .filter(|_| made.is_file() && !secret)
                .into_iter()
                .collect(),
            failure: secret.then(|| "the result contains a secret".to_owned()),
        }
    });
    ExitCode::from(u8::try_from(exit).unwrap_or(1))
}
