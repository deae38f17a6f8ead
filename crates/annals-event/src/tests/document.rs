//! Compares `docs/format.md` on events with the code.
#![allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, as it should")]

use std::collections::BTreeMap;

use annals_simulated::document::{codes, rows};

use crate::opcode;

#[test]
fn the_codes_of_types_are_those_of_the_document() {
    use annals_schema::{OnDelete, TableNumber, Type, Variants};
    let types = Type::PLAIN.into_iter().map(|ty| (ty, ty.name()));
    let others = [
        (Type::FixedBytes(16), "bytes(N)"),
        (Type::Decimal(2), "decimal(scale)"),
        (Type::Enum(Variants::of(["a"]).unwrap()), "enum(..)"),
        (Type::Reference(TableNumber(0), OnDelete::Dangle), "references"),
    ];
    let types = types.chain(others).map(|(ty, name)| (opcode::of_type(ty).into(), name.to_owned()));
    let code: BTreeMap<u64, String> = types.collect();
    assert_eq!(codes("Types"), code);
}

#[test]
fn compact_integers_are_those_of_the_document() {
    let of_section = rows().into_iter().filter(|row| row.section == "Numbers, strings, values");
    let mut examples = 0;
    for row in of_section.filter(|row| row.cells[0].starts_with('`')) {
        let bytes: Vec<u8> = row.cells[0]
            .trim_matches('`')
            .split(' ')
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect();
        let (unsigned, signed) = (row.cells[1].parse().unwrap(), row.cells[2].parse().unwrap());
        let (mut first, mut second) = (Vec::new(), Vec::new());
        crate::compact::put(&mut first, unsigned);
        crate::compact::put_signed(&mut second, signed);
        assert_eq!((&first, &second), (&bytes, &bytes));
        examples += 1;
    }
    assert!(examples >= 7);
}
