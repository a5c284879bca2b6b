//! Ids, decimals, digests, tokens: what is inside the bounds and what is not.
//! Invariant: a scalar of the protocol has exactly one text.
//! Called by `cargo test`.

use aiws::canonical::from_value;
use aiws::decimal::{Dec, DecPlus, Ms, U64};
use aiws::digest::{Digest, Hasher, hmac_sha256, sha256, tagged};
use aiws::error::Code;
use aiws::id::{Id, NodeId, RunId};
use aiws::json::Value;
use aiws::token::ClaimToken;
use proptest::prelude::*;

/// Proves ID-1, F-16: 1 to 256 Unicode scalar values, counted as such; the empty id is refused.
#[test]
fn id_1_bounds() {
    for text in [
        "a",
        " ",
        "a/b:../c",
        "\u{0}",
        &"x".repeat(256),
        &"\u{1f602}".repeat(256),
    ] {
        let id = RunId::new(text).expect(text);
        assert_eq!((id.as_str(), id.to_string().as_str()), (text, text));
        assert_eq!(from_value::<RunId>(&Value::from(text)), Ok(id));
    }
    for text in [
        "",
        &"x".repeat(257),
        &"\u{1f602}".repeat(257),
        &"x".repeat(100_000),
    ] {
        let error = RunId::new(text).expect_err("out of bounds");
        assert_eq!(error.code, Code::SchemaInvalid);
        assert!(error.message.contains("RunId of 1 to 256"), "{error}");
        assert!(from_value::<RunId>(&Value::from(text)).is_err());
    }
    assert!(from_value::<RunId>(&Value::Int(1)).is_err());
}

/// A plain id keeps the text of whatever it came from.
#[test]
fn ids_convert_without_change() {
    let node = NodeId::new("n").expect("id");
    assert_eq!(NodeId::from(node.as_id()), node);
    assert_eq!(Id::from(&node).as_str(), "n");
    assert_eq!(format!("{node:?}"), "NodeId(\"n\")");
}

/// Proves NUM-1, FV-CON.4: a canonical unsigned decimal string and nothing else; no fraction, no number literal.
#[test]
fn num_1_canonical_decimals() {
    for text in [
        "0",
        "1",
        "9",
        "10",
        "18446744073709551615",
        "18446744073709551616",
        &"9".repeat(100),
    ] {
        assert_eq!(text.parse::<Dec>().expect(text).to_string(), text);
        assert_eq!(
            from_value::<Dec>(&Value::from(text))
                .expect(text)
                .to_string(),
            text
        );
    }
    for text in [
        "",
        "01",
        "00",
        "+1",
        "-1",
        "-0",
        " 1",
        "1 ",
        "1.5",
        "1e3",
        "0x1",
        "1_000",
        "\u{661}",
        "\u{ff11}",
        "unlimited",
    ] {
        assert_eq!(
            text.parse::<Dec>().expect_err(text).code,
            Code::SchemaInvalid
        );
        for refused in [
            from_value::<Dec>(&Value::from(text)).is_err(),
            from_value::<Ms>(&Value::from(text)).is_err(),
            from_value::<U64>(&Value::from(text)).is_err(),
            from_value::<DecPlus>(&Value::from(text)).is_err(),
        ] {
            assert!(refused, "{text}");
        }
    }
    assert!(from_value::<Dec>(&Value::Int(1)).is_err());
    assert!(from_value::<Dec>(&Value::Null).is_err());
}

/// Proves NUM-2: 100 digits and no more, and arithmetic past them is refused, never wrapped.
#[test]
fn num_2_hundred_digits() {
    let most: Dec = "9".repeat(100).parse().expect("100 digits");
    let one = Dec::from_u64(1);
    assert_eq!(most, Dec::max());
    assert!("1".repeat(101).parse::<Dec>().is_err());
    assert_eq!(most.checked_add(one), None);
    assert_eq!(most.checked_add(most), None);
    assert_eq!(most.checked_add(Dec::ZERO), Some(most));
    assert_eq!(
        most.checked_sub(one).and_then(|less| less.checked_add(one)),
        Some(most)
    );
    assert_eq!(Dec::ZERO.checked_sub(one), None);
    assert_eq!(most.to_u64(), None);
}

/// Proves NUM-3, F-11: where a positive number is asked for, zero, a negative number and an overflow are refused.
#[test]
fn num_3_positive() {
    assert_eq!(
        "1".parse::<DecPlus>().map(|number| number.get()),
        Ok(Dec::from_u64(1))
    );
    for text in ["0", "-1", &"9".repeat(101)] {
        assert!(text.parse::<DecPlus>().is_err(), "{text}");
        assert!(from_value::<DecPlus>(&Value::from(text)).is_err(), "{text}");
    }
}

/// A time beyond u64 is never reached; a stored number beyond it is refused (T-57).
#[test]
fn beyond_u64() {
    let far: Ms = "18446744073709551616".parse().expect("Ms");
    assert!(!far.reached(u64::MAX));
    assert!(Ms::from_u64(5).reached(5) && !Ms::from_u64(6).reached(5));
    assert!("18446744073709551616".parse::<U64>().is_err());
    assert_eq!("18446744073709551615".parse::<U64>(), Ok(U64(u64::MAX)));
}

/// Proves DIG-1: 64 lowercase hex characters and nothing else.
#[test]
fn dig_1_lowercase_hex() {
    let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(text.parse::<Digest>(), Ok(sha256(b"abc")));
    assert_eq!(from_value::<Digest>(&Value::from(text)), Ok(sha256(b"abc")));
    let multibyte = format!("{}\u{e4}", &text[..62]);
    for bad in [
        &text.to_uppercase(),
        &text[..63],
        &format!("{text}0"),
        "",
        &text.replace('b', "g"),
        &multibyte,
    ] {
        assert!(bad.parse::<Digest>().is_err(), "{bad}");
        assert!(from_value::<Digest>(&Value::from(bad)).is_err(), "{bad}");
    }
}

/// Digests in pieces, under tags, and the published HMAC vectors (RFC 4231, cases 1, 2 and 6).
#[test]
fn digests_and_hmac() {
    let mut hasher = Hasher::new();
    hasher.update(b"tag\nab");
    hasher.update(b"c");
    assert_eq!(hasher.finish(), tagged("tag", b"abc"));
    assert_ne!(tagged("a", b"b"), tagged("b", b"b"));
    assert!(sha256(b"a").ct_eq(&sha256(b"a")) && !sha256(b"a").ct_eq(&sha256(b"b")));
    for (key, data, mac) in [
        (
            &[0x0b; 20][..],
            &b"Hi There"[..],
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ] {
        assert_eq!(Digest(hmac_sha256(key, data)).to_string(), mac);
    }
}

/// A claim token has one text, and neither its Debug form nor a refusal shows it.
#[test]
fn tokens_have_one_text_and_stay_secret() {
    let token = ClaimToken::from_bytes([0xfb; 32]);
    let text = token.expose();
    assert_eq!(text.len(), 43);
    assert_eq!(text, format!("{}-_s", "-_v7".repeat(10)));
    assert_eq!(
        ClaimToken::parse(&text).map(|read| read.fingerprint()),
        Ok(sha256(text.as_bytes()))
    );
    assert!(!format!("{token:?}").contains(&text[..4]));
    let last_bits_set = format!("{}t", &text[..42]);
    for bad in [
        "",
        &text[..42],
        &format!("{text}A"),
        &last_bits_set,
        &text.replace('v', "+"),
    ] {
        let error = ClaimToken::parse(bad).expect_err("refused");
        assert!(
            bad.is_empty() || !error.to_string().contains(bad),
            "{error}"
        );
    }
}

proptest! {
    /// Decimals behave as whole numbers do.
    #[test]
    fn decimals_agree_with_machine_integers(a in any::<u64>(), b in any::<u64>()) {
        let (x, y) = (Dec::from_u64(a), Dec::from_u64(b));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.checked_add(y).map(|sum| sum.to_string()), Some((u128::from(a) + u128::from(b)).to_string()));
        prop_assert_eq!(x.checked_sub(y), a.checked_sub(b).map(Dec::from_u64));
        prop_assert_eq!(x.to_u64(), Some(a));
    }

    /// Text order by length and then by digits is number order.
    #[test]
    fn decimals_of_any_length_order_as_numbers(a in "[1-9][0-9]{0,99}", b in "[1-9][0-9]{0,99}") {
        let expected = (a.len(), &a).cmp(&(b.len(), &b));
        prop_assert_eq!(a.parse::<Dec>().expect("dec").cmp(&b.parse::<Dec>().expect("dec")), expected);
    }

    /// Every token survives its text.
    #[test]
    fn tokens_read_back(bytes in any::<[u8; 32]>()) {
        let token = ClaimToken::from_bytes(bytes);
        prop_assert_eq!(ClaimToken::parse(&token.expose()).map(|read| read.expose()), Ok(token.expose()));
    }
}
