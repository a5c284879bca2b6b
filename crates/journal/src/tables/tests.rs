//! Each kind of key and value as bytes: exactly the written form, back to the same, and nothing else accepted.
//!
//! Invariant: a row that is not what this build writes is damage, never another row; a row that is not read costs the
//! whole index. Found by mutation testing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Debug;

use aiws::decimal::Dec;
use praxis_model::account::Dimension;
use praxis_model::event::{DueKind, IdentityKind};
use praxis_model::register::RegisterKind;

use super::*;

/// The value reads back from its bytes; cut or with more behind them they are no value, or another one.
fn assert_read_back<T: Bytes + PartialEq + Debug>(value: &T) {
    let bytes = value.write();
    assert_eq!(T::read(&bytes).as_ref(), Some(value));
    for len in 0..bytes.len() {
        assert_ne!(T::read(&bytes[..len]).as_ref(), Some(value), "{value:?}");
    }
    let longer = [&bytes[..], b"\0"].concat();
    assert_ne!(T::read(&longer).as_ref(), Some(value), "{value:?}");
}

fn stream() -> StreamId {
    "s".parse().unwrap()
}

/// Every key reads back, and stands on the disk in the form that the table says.
#[test]
fn keys_have_one_form() {
    assert_read_back(&stream());
    assert_read_back(&ConsumerId::new("c").unwrap());
    assert_eq!(stream().write(), b"\0\x01s");
    let mission_id: aiws::id::MissionId = "mm".parse().unwrap();
    let request = RequestKey {
        mission_id: mission_id.clone(),
        actor_id: "a".parse().unwrap(),
        request_id: "rrr".parse().unwrap(),
    };
    assert_read_back(&request);
    assert_eq!(request.write(), b"\0\x02mm\0\x01a\0\x03rrr");
    let identity = IdentityKey {
        mission_id: mission_id.clone(),
        kind: IdentityKind::Run,
        key: Id::new("r").unwrap(),
    };
    assert_read_back(&identity);
    assert_eq!(identity.write(), b"\0\x02mm\0\x03RUN\0\x01r");
    assert_read_back(&RegisterKey {
        mission_id: mission_id.clone(),
        kind: RegisterKind::RunAdmission,
        key: Id::new("r").unwrap(),
    });
    assert_read_back(&AccountKey {
        mission_id: mission_id.clone(),
        scope_id: "s".parse().unwrap(),
        dimension: Dimension::Cost,
    });
    let run = Subject::run(mission_id.clone(), "r".parse().unwrap());
    assert_read_back(&run);
    assert_eq!(run.write(), b"\0\x02mm\0\x01r");
    assert_read_back(&Subject::mission(mission_id));
    let due = DueKey {
        at_ms: 258,
        stream: stream(),
        kind: DueKind::Live,
    };
    assert_read_back(&due);
    assert_eq!(due.write(), b"\0\0\0\0\0\0\x01\x02\0\x01s\0\x04LIVE");
}

/// Every value reads back.
#[test]
fn values_are_read_back() {
    let digest = Digest([7; 32]);
    assert_read_back(&258_u64);
    assert_eq!(258_u64.write(), [0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!((().write(), <()>::read(b"")), (Vec::new(), Some(())));
    assert_eq!(<()>::read(b"\0"), None);
    assert_read_back(&HeadRow {
        head: Head {
            revision: 3.into(),
            hash: digest,
        },
        sequence: 9,
    });
    assert_read_back(&OwnerRow { epoch: 2, boot: 5 });
    let sequence = 9;
    assert_read_back(&RequestRow { digest, sequence });
    let identity = IdentityRow {
        digest,
        sequence,
        stream: stream(),
    };
    assert_read_back(&identity);
    let mut bytes = vec![7; 32];
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 9, b's']);
    assert_eq!(identity.write(), bytes);
    let register = RegisterRow {
        revision: 4,
        value: aiws::object! { "a": 1 },
    };
    assert_read_back(&register);
    assert_eq!(register.write(), br#"{"revision":"4","value":{"a":1}}"#);
    let account = AccountRow {
        bound: Dec::from_u64(100),
        spent: Dec::from_u64(1),
        reserved: Dec::from_u64(2),
        overrun: Dec::ZERO,
        revision: 6.into(),
    };
    assert_read_back(&account);
    assert_read_back(&vec![Gate::Cancel]);
    assert_read_back(&Vec::<Gate>::new());
    let hold_id = "h".parse().unwrap();
    assert_read_back(&vec![Gate::Hold { hold_id }, Gate::Cancel]);
}

/// No two tables have one name, for names stay on the disk.
#[test]
fn tables_have_names_of_their_own() {
    let mut names: Vec<&str> = Table::ALL.iter().map(|table| table.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Table::ALL.len());
}
