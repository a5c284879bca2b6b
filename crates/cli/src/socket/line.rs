//! The lines of `praxis-socket/1`: what a client sends and what it gets.
//! Invariant: one JSON object per line, bounded, with a version from the first byte; what does not fit is refused by a line.
//! Called by `server` and `client`; described in docs/SOCKET.md.

use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::object;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::answer::{Answer, View};
use crate::exit::Exit;
use crate::limits::{SOCKET_ANSWER_BYTES, SOCKET_REQUEST_BYTES};
use crate::render::escape;
use crate::render::text::Style;
use crate::request::Request;

/// Most bytes of how a client types the program: a path is among them.
const PROGRAM_BYTES: usize = 8_192;

/// The name of the protocol, as the first line of an engine says it.
pub const PROTOCOL: &str = "praxis-socket/1";

/// A request with its number and who looks at the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The client's number for it; answers carry it.
    pub id: u64,
    /// What is asked.
    pub request: Request,
    /// How the answer is dressed.
    pub view: View,
    /// How the client types the program, for the commands that an answer suggests.
    pub program: Option<String>,
}

/// A line from the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// One of several things on the way to the answer.
    Item(Answer),
    /// The answer; the last line for this request.
    Answer(Answer),
    /// The refusal; the last line for this request.
    Error(Error),
}

/// The first line that an engine sends.
#[must_use]
pub fn hello(store_id: &str) -> Value {
    object! {
        "protocol": PROTOCOL,
        "praxis": env!("CARGO_PKG_VERSION"),
        "storeId": store_id,
        "process": std::process::id().to_string(),
    }
}

/// The first line of an engine that takes no more connections, and its last.
#[must_use]
pub fn full(error: &Error) -> Value {
    object! {
        "protocol": PROTOCOL,
        "praxis": env!("CARGO_PKG_VERSION"),
        "error": error.to_value(),
    }
}

impl Asked {
    /// The request in a line, and its number as far as that can be read.
    ///
    /// # Errors
    ///
    /// `USAGE` where it is none.
    pub fn parse(line: &[u8]) -> Result<Self, (u64, Error)> {
        let value = aiws::strict::parse_with_limit(line, SOCKET_REQUEST_BYTES as usize).map_err(
            |error| {
                let message = format!("expected a line with one JSON object: {}", error.message);
                (0, Error::new(Code::Usage, message))
            },
        )?;
        let id = number(&value, "id").unwrap_or(0);
        let failed = |message: &str| (id, Error::new(Code::Usage, message));
        if value.get("protocol").and_then(Value::as_str) != Some(PROTOCOL) {
            return Err(failed(
                "expected \"protocol\": \"praxis-socket/1\" in the request",
            ));
        }
        let Value::Object(members) = &value else {
            return Err(failed("expected an object"));
        };
        let known = ["protocol", "id", "view", "program", "request"];
        if let Some(unknown) = members.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(failed(&format!(
                "expected protocol, id, view, program and request, found {:?}",
                crate::render::escape::line(unknown)
            )));
        }
        if number(&value, "id").is_none() {
            return Err(failed("expected \"id\": a whole number"));
        }
        let request = members
            .get("request")
            .ok_or_else(|| failed("expected a member request"))?;
        let request = Request::from_value(request).map_err(|error| (id, error))?;
        let view = view(members.get("view")).ok_or_else(|| {
            failed("expected \"view\" to be {\"width\": 80, \"colour\": false}, or absent")
        })?;
        let program = match members.get("program") {
            None | Some(Value::Null) => None,
            Some(Value::String(typed)) if typed.len() <= PROGRAM_BYTES => Some(escape::line(typed)),
            Some(_) => {
                return Err(failed(
                    "expected \"program\" to be how you type it, such as \"praxis\", or absent",
                ));
            }
        };
        Ok(Self {
            id,
            request,
            view,
            program,
        })
    }

    /// The line of the request.
    ///
    /// # Errors
    ///
    /// The codec's own.
    pub fn to_value(&self) -> Result<Value, Error> {
        let view = self.view.style.map(
            |style| object! { "width": number_of(style.width as u64), "colour": style.colour },
        );
        Ok(object! {
            "protocol": PROTOCOL,
            "id": number_of(self.id),
            "view": view,
            "program": self.program.as_deref(),
            "request": self.request.to_value()?,
        })
    }
}

fn view(value: Option<&Value>) -> Option<View> {
    let value = match value {
        None | Some(Value::Null) => return Some(View::PROGRAM),
        Some(value) => value,
    };
    let width = usize::try_from(number(value, "width")?).ok()?;
    let colour = value.get("colour")?.as_bool()?;
    Some(View {
        style: Some(Style {
            colour,
            width: width.clamp(40, 200),
        }),
    })
}

impl Said {
    /// The line.
    #[must_use]
    pub fn to_value(&self, id: u64) -> Value {
        let said = |answer: &Answer| {
            object! {
                "value": answer.value.clone(),
                "text": answer.text.as_str(),
                "exit": answer.exit as i32,
            }
        };
        let (name, said) = match self {
            Self::Item(answer) => ("item", said(answer)),
            Self::Answer(answer) => ("answer", said(answer)),
            Self::Error(error) => ("error", error.to_value()),
        };
        let mut line = aiws::json::Object::new();
        line.insert("id".to_owned(), number_of(id));
        line.insert(name.to_owned(), said);
        Value::Object(line)
    }

    /// The line of this number; none where it is another one's, or nothing that this version knows.
    #[must_use]
    pub fn from_value(value: &Value, id: u64) -> Option<Self> {
        if number(value, "id")? != id {
            return None;
        }
        let said = |value: &Value| {
            Some(Answer {
                value: value.get("value")?.clone(),
                text: value.get("text")?.as_str()?.to_owned(),
                exit: Exit::from_number(value.get("exit")?.as_int()?)?,
            })
        };
        if let Some(item) = value.get("item") {
            return said(item).map(Self::Item);
        }
        if let Some(answer) = value.get("answer") {
            return said(answer).map(Self::Answer);
        }
        refusal(value.get("error")?).map(Self::Error)
    }
}

fn number(value: &Value, name: &str) -> Option<u64> {
    u64::try_from(value.get(name)?.as_int()?).ok()
}

/// A number that a client chose, or a width: both are far below the bound of JSON's numbers.
fn number_of(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// An error as [`Error::to_value`] writes it.
pub(crate) fn refusal(value: &Value) -> Option<Error> {
    let said = |name: &str| value.get(name).and_then(Value::as_str);
    let mut error = Error::new(Code::parse(said("code")?)?, said("message")?);
    if let Some(Value::Object(details)) = value.get("details") {
        error.details = details.clone();
    }
    let pointer = error.details.remove("pointer");
    error.pointer = pointer.and_then(|pointer| pointer.as_str().map(str::to_owned));
    Some(error)
}

/// Reads a line without its end; none at the end of the stream.
///
/// # Errors
///
/// `USAGE` where a line is longer than the bound, `STORE_IO` where the stream fails.
pub async fn read(
    stream: &mut (impl AsyncBufRead + Unpin),
    bound: u64,
) -> Result<Option<Vec<u8>>, Error> {
    let mut line = Vec::new();
    let count = stream
        .take(bound)
        .read_until(b'\n', &mut line)
        .await
        .map_err(|error| Error::new(Code::StoreIo, format!("the socket failed: {error}")))?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) if count as u64 == bound => Err(Error::new(
            Code::Usage,
            format!("expected a line of at most {bound} bytes"),
        )),
        // Half a line says nothing.
        Some(_) => Ok(None),
    }
}

/// Reads a client's line.
///
/// # Errors
///
/// As [`read`].
pub async fn read_request(
    stream: &mut (impl AsyncBufRead + Unpin),
) -> Result<Option<Vec<u8>>, Error> {
    read(stream, SOCKET_REQUEST_BYTES).await
}

/// Reads an engine's line.
///
/// # Errors
///
/// As [`read`].
pub async fn read_answer(
    stream: &mut (impl AsyncBufRead + Unpin),
) -> Result<Option<Vec<u8>>, Error> {
    read(stream, SOCKET_ANSWER_BYTES).await
}

/// Writes a line.
///
/// # Errors
///
/// The stream's; nobody listens any more.
pub async fn write(stream: &mut (impl AsyncWrite + Unpin), value: &Value) -> std::io::Result<()> {
    let mut line = value.to_string();
    line.push('\n');
    stream.write_all(line.as_bytes()).await?;
    stream.flush().await
}
