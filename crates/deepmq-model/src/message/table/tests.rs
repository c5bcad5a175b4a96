//! Tables against bytes that another implementation wrote, at their limits, and against themselves.

use proptest::prelude::*;

use super::*;

fn encoded(table: &Table) -> Vec<u8> {
    let mut out = Vec::new();
    encode(table, &mut out);
    out
}

fn one(key: &str, value: Value) -> Table {
    [(key, value)].into_iter().collect()
}

fn check(key: &str, value: Value, bytes: &[u8]) {
    let table = one(key, value);
    assert_eq!(encoded(&table), bytes, "{key}");
    assert_eq!(decode(&mut Reader::new(bytes)), Ok(table));
    assert_eq!(validate(bytes), Ok(()));
}

#[test]
fn every_type_is_written_as_others_write_it() {
    check("bool", Value::Bool(true), b"\0\0\0\x07\x04boolt\x01");
    check("i", Value::I8(-2), b"\0\0\0\x04\x01ib\xfe");
    check("B", Value::U8(254), b"\0\0\0\x04\x01BB\xfe");
    check("s", Value::I16(-2), b"\0\0\0\x05\x01ss\xff\xfe");
    check("u", Value::U16(0xfffe), b"\0\0\0\x05\x01uu\xff\xfe");
    check("I", Value::I32(-2), b"\0\0\0\x07\x01II\xff\xff\xff\xfe");
    check("i", Value::U32(1), b"\0\0\0\x07\x01ii\0\0\0\x01");
    check("big", Value::I64(1 << 40), b"\0\0\0\x0d\x03bigl\0\0\x01\0\0\0\0\0");
    check("f", Value::F32(0.5), b"\0\0\0\x07\x01ff\x3f\0\0\0");
    check("d", Value::F64(-2.0), b"\0\0\0\x0b\x01dd\xc0\0\0\0\0\0\0\0");
    check("dec", Value::Decimal { scale: 2, digits: 314 }, b"\0\0\0\x0a\x03decD\x02\0\0\x01\x3a");
    check("s", Value::str("text"), b"\0\0\0\x0b\x01sS\0\0\0\x04text");
    check("x", Value::Bytes([0, 0xff].into()), b"\0\0\0\x09\x01xx\0\0\0\x02\0\xff");
    check("ts", Value::Timestamp(1_700_000_000), b"\0\0\0\x0c\x02tsT\0\0\0\0\x65\x53\xf1\0");
    let items = vec![Value::I8(1), Value::str("a")];
    check("arr", Value::Array(items), b"\0\0\0\x11\x03arrA\0\0\0\x08b\x01S\0\0\0\x01a");
    check("tab", Value::Table(one("n", Value::Void)), b"\0\0\0\x0c\x03tabF\0\0\0\x03\x01nV");
}

#[test]
fn both_letters_of_a_long_are_read_as_one() {
    let read = decode(&mut Reader::new(b"\0\0\0\x0b\x01kL\xff\xff\xff\xff\xff\xff\xff\xff"));
    assert_eq!(read, Ok(one("k", Value::I64(-1))));
}

#[test]
fn what_breaks_the_encoding_is_refused() {
    let refused: [&[u8]; 7] = [
        b"",
        b"\0\0\0\x01",
        b"\0\0\0\x04\x01kz\0",
        b"\0\0\0\x03\x01kt",
        b"\0\0\0\x03\x01\xffV",
        b"\0\0\0\x08\x01kA\0\0\0\x05V",
        b"\xff\xff\xff\xff\x01kV",
    ];
    for bytes in refused {
        assert!(decode(&mut Reader::new(bytes)).is_err(), "{bytes:?}");
        assert!(validate(bytes).is_err(), "{bytes:?}");
    }
    assert!(validate(b"\0\0\0\0\0").is_err(), "an octet is left over");
}

/// Bytes of tables and arrays nested in one another, as the letters say from the innermost out, in one more table.
fn nested(letters: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let (mut inside, mut wrapped) = (vec![0; 4], b'F');
    for letter in letters {
        let key = if letter == b'F' { b"\x01k".as_slice() } else { b"" };
        let item = [key, &[wrapped], &inside].concat();
        inside = [&u32::try_from(item.len()).unwrap().to_be_bytes()[..], &item].concat();
        wrapped = letter;
    }
    inside
}

#[test]
fn nesting_has_a_limit() {
    let tables = |levels: usize| nested(std::iter::repeat_n(b'F', levels - 1));
    for (levels, accepted) in
        [(DEPTH_MAX - 1, true), (DEPTH_MAX, true), (DEPTH_MAX + 1, false), (5_000, false)]
    {
        let bytes = tables(levels);
        assert_eq!(validate(&bytes).is_ok(), accepted, "{levels}");
        assert_eq!(decode(&mut Reader::new(&bytes)).is_ok(), accepted, "{levels}");
    }
}

#[test]
fn arrays_count_as_levels_too() {
    let arrays = |levels: usize| nested(std::iter::repeat_n(b'A', levels - 2).chain([b'F']));
    assert_eq!(validate(&arrays(DEPTH_MAX)), Ok(()));
    assert!(validate(&arrays(DEPTH_MAX + 1)).is_err());
}

#[test]
fn size_has_a_limit() {
    for (size, accepted) in
        [(TABLE_BYTES_MAX - 1, true), (TABLE_BYTES_MAX, true), (TABLE_BYTES_MAX + 1, false)]
    {
        let overhead = "\x01kS\0\0\0\0".len();
        let bytes = encoded(&one("k", Value::Str(vec![b'a'; size - overhead].into())));
        assert_eq!(bytes.len(), size + 4);
        assert_eq!(validate(&bytes).is_ok(), accepted, "{size}");
        assert_eq!(decode(&mut Reader::new(&bytes)).is_ok(), accepted, "{size}");
    }
}

#[test]
fn a_key_is_found_without_decoding_the_rest() {
    let table: Table =
        [("a", Value::Table(one("CC", Value::I8(1)))), ("CC", Value::I8(2)), ("CC", Value::I8(3))]
            .into_iter()
            .collect();
    let bytes = encoded(&table);
    assert_eq!(find(&bytes, "CC"), Some(Value::I8(2)));
    assert_eq!(find(&bytes, "BCC"), None);
    assert_eq!(find(&bytes[..5], "CC"), None);
}

fn value() -> impl Strategy<Value = Value> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..20).prop_map(Vec::into_boxed_slice);
    let leaf = prop_oneof![
        Just(Value::Void),
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::I8),
        any::<u8>().prop_map(Value::U8),
        any::<i16>().prop_map(Value::I16),
        any::<u16>().prop_map(Value::U16),
        any::<i32>().prop_map(Value::I32),
        any::<u32>().prop_map(Value::U32),
        any::<i64>().prop_map(Value::I64),
        (-1e30_f32..1e30).prop_map(Value::F32),
        (-1e300_f64..1e300).prop_map(Value::F64),
        any::<(u8, u32)>().prop_map(|(scale, digits)| Value::Decimal { scale, digits }),
        bytes().prop_map(Value::Str),
        bytes().prop_map(Value::Bytes),
        any::<u64>().prop_map(Value::Timestamp),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((".{0,8}", inner), 0..4)
                .prop_map(|entries| Value::Table(entries.into_iter().collect())),
        ]
    })
}

/// Bytes that are likely to look like a table for a while.
fn almost_a_table() -> impl Strategy<Value = Vec<u8>> {
    let likely =
        prop_oneof![0_u8..8, Just(0), proptest::sample::select(b"VtbBsuIiLlfdDSxTAF".to_vec()), any::<u8>()];
    proptest::collection::vec(likely, 0..60).prop_map(|mut inside| {
        let len = u32::try_from(inside.len()).unwrap();
        inside.splice(0..0, len.to_be_bytes());
        inside
    })
}

/// Upper bound of the bytes on the heap below `value`: vectors grow by doubling, from four items.
fn heap_bytes(value: &Value) -> usize {
    let grown =
        |items: usize, size: usize| if items == 0 { 0 } else { items.next_power_of_two().max(4) * size };
    match value {
        Value::Str(bytes) | Value::Bytes(bytes) => bytes.len(),
        Value::Array(items) => {
            grown(items.len(), size_of::<Value>()) + items.iter().map(heap_bytes).sum::<usize>()
        }
        Value::Table(table) => {
            let entries = table.iter().map(|(key, value)| key.len() + heap_bytes(value));
            grown(table.len(), size_of::<(Box<str>, Value)>()) + entries.sum::<usize>()
        }
        _ => 0,
    }
}

#[test]
fn memory_stays_in_proportion_to_the_bytes_read() {
    let arrays_of_one = nested(std::iter::repeat_n(b'A', DEPTH_MAX - 2).chain([b'F']));
    let nothings = encoded(&one("", Value::Array(vec![Value::Void; 65_537])));
    let entries = encoded(&(0..65_537).map(|_| ("", Value::Void)).collect());
    for bytes in [arrays_of_one, nothings, entries] {
        let table = decode(&mut Reader::new(&bytes)).unwrap();
        assert!(heap_bytes(&Value::Table(table)) <= 64 * bytes.len());
    }
}

proptest! {
    #[test]
    fn a_table_is_decoded_as_it_was_encoded(entries in proptest::collection::vec((".{0,20}", value()), 0..6)) {
        let table: Table = entries.into_iter().collect();
        let bytes = encoded(&table);
        prop_assert_eq!(validate(&bytes), Ok(()));
        for (key, _) in table.iter() {
            prop_assert_eq!(find(&bytes, key), table.get(key).cloned());
        }
        for end in 0..bytes.len() {
            prop_assert!(decode(&mut Reader::new(&bytes[..end])).is_err());
        }
        prop_assert_eq!(decode(&mut Reader::new(&bytes)), Ok(table));
    }

    #[test]
    fn checking_and_decoding_agree_on_arbitrary_bytes(bytes in almost_a_table()) {
        let mut reader = Reader::new(&bytes);
        let decoded = decode(&mut reader).and_then(|_| reader.finish());
        prop_assert_eq!(validate(&bytes), decoded);
    }
}
