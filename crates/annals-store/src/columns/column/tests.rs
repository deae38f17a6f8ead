//! Columns of every type, against a model; saved, loaded and continued.

use annals_schema::{OnDelete, TableNumber};

use super::*;
use crate::pages::testing::{TestImage, load};

fn column(ty: Type, nullable: bool, default: Option<Value>) -> Column {
    let (number, name) = (FieldNumber(0), "f".to_owned());
    Column::new(&Field { number, name, ty, nullable, default }, 10)
}

/// Returns a value of each type.
fn values() -> Vec<(Type, Value)> {
    let reference = Type::Reference(TableNumber(0), OnDelete::Dangle);
    Type::samples().into_iter().chain([reference]).map(|ty| (ty, ty.sample(77))).collect()
}

/// Returns whether the value of a slot can be read again without loading anything, as a table asks for it.
fn stays(column: &Column, slot: usize) -> crate::Result<bool> {
    Ok(column.cells_stay(slot)? && column.text_stays(slot)?)
}

#[test]
fn every_type_is_written_moved_and_read() {
    let epoch = Epoch::first();
    let values = values();
    for &(ty, ref value) in &values {
        let value = value.as_ref();
        let mut plain = column(ty, false, None);
        let mut column = column(ty, true, Some(value.to_value()));
        assert!(column.accepts(&value) && column.accepts(&ValueRef::Null));
        assert!(!plain.accepts(&ValueRef::Null));
        assert_eq!(column.get(9).unwrap(), value);
        column.insert(10, ValueRef::Null, epoch.fresh()).unwrap();
        column.insert(11, value, epoch.fresh()).unwrap();
        column.move_cell(11, 12, epoch.fresh()).unwrap();
        column.move_cell(10, 11, epoch.fresh()).unwrap();
        assert_eq!(column.get(11).unwrap(), ValueRef::Null);
        assert_eq!(column.get(12).unwrap(), value);
        column.replace(9, ValueRef::Null, epoch.seen()).unwrap();
        assert_eq!(column.get(8).unwrap(), value);
        assert_eq!(column.get(9).unwrap(), ValueRef::Null);
        plain.insert(10, value, epoch.fresh()).unwrap();
        assert_eq!(plain.get(10).unwrap(), value);
        assert_ne!(plain.get(9).unwrap(), value);
        for (_, other) in &values {
            let other = other.as_ref();
            assert_eq!(plain.accepts(&other), ty.accepts(false, other), "{ty}: {other}");
        }
    }
}

/// Makes a value of a type, or null.
fn made(ty: Type, nullable: bool, seed: usize) -> Value {
    let bytes = (seed as u64).wrapping_mul(0x9e37_79b9).to_le_bytes();
    let [a, b, c, d, ..] = bytes;
    let eight = u64::from_le_bytes([a, b, c, d, a, b, c, d]);
    let text = || format!("{seed}").repeat(usize::from(a) % 9);
    match ty {
        _ if nullable && c < 60 => Value::Null,
        Type::String => Value::String(text()),
        Type::Bytes => Value::Bytes(text().into_bytes()),
        ty => ty.sample(eight.cast_signed()),
    }
}

struct Case {
    field: Field,
    column: Column,
    model: Vec<Value>,
    epoch: Epoch,
}

impl Case {
    fn append(&mut self, count: usize, round: usize) {
        for slot in self.model.len()..self.model.len() + count {
            let value = made(self.field.ty, self.field.nullable, slot + round * 7);
            self.column.insert(slot, value.as_ref(), self.epoch.fresh()).unwrap();
            self.model.push(value);
        }
    }

    fn change(&mut self, round: usize) {
        for slot in (round..self.model.len()).step_by(11) {
            let value = made(self.field.ty, self.field.nullable, slot * 3 + round);
            self.column.replace(slot, value.as_ref(), self.epoch.seen()).unwrap();
            self.model[slot] = value;
        }
    }
}

fn look(column: &Column, model: &[Value]) {
    for (slot, value) in model.iter().enumerate() {
        assert_eq!(column.get(slot).unwrap(), value.as_ref(), "slot {slot}");
        let is_null = matches!(value, Value::Null);
        assert_eq!(column.is_null(slot).unwrap(), is_null, "slot {slot}");
        assert!(stays(column, slot).is_ok());
    }
    let nulls = model.iter().any(|value| matches!(value, Value::Null));
    assert_eq!(column.has_null(0, model.len()).unwrap(), nulls);
    let mut slot = 0;
    while let width @ 1.. = column.run(slot, model.len() - slot).unwrap().len() {
        slot += width / width_of(column);
    }
    assert!(slot == 0 || slot == model.len());
}

fn width_of(column: &Column) -> usize {
    width(column.ty()).unwrap()
}

#[test]
fn every_type_is_saved_loaded_and_gone_on_with() {
    for keeps in [true, false] {
        for (nullable, (ty, _)) in
            [true, false].into_iter().flat_map(|n| values().into_iter().map(move |v| (n, v)))
        {
            // Enough for several pages of cells, and more than the cache has.
            let rows = if cfg!(miri) { 200 } else { 9000 };
            let (image, pager) = TestImage::new(60_000, keeps);
            let field = Field {
                number: FieldNumber(0),
                name: "f".to_owned(),
                ty,
                nullable,
                default: Some(made(ty, false, 5)),
            };
            let column = Column::new(&field, 20);
            let model = vec![made(ty, false, 5); 20];
            let mut case = Case { field, column, model, epoch: Epoch::first() };
            case.append(rows, 0);
            let mut views = Vec::new();
            for round in 1..5 {
                case.change(round);
                case.epoch.advance();
                let (view, then) = (case.column.clone(), case.model.clone());
                case.append(300, round); // in the pages that the view has
                let blanks = Blanks { from: then.len(), gap: (0, 0) };
                let saved = image.save(&pager, |out| view.save(out, &blanks));
                let loaded =
                    load(&saved, &pager, |input| Column::load(input, &case.field, false)).unwrap();
                look(&loaded, &then);
                if round % 2 == 1 {
                    case.column.rebase(&saved);
                } else {
                    // Rolled back, and continued from the image.
                    case.epoch.advance();
                    (case.column, case.model) = (loaded, then.clone());
                }
                look(&case.column, &case.model);
                case.append(50, round + 1);
                look(&case.column, &case.model);
                views.push((view, then));
            }
            views.iter().for_each(|(view, model)| look(view, model));
        }
    }
}

#[test]
fn what_is_kept_stays_and_what_cannot_be_loaded_is_an_error() {
    for (keeps, ty) in
        [true, false].into_iter().flat_map(|k| values().into_iter().map(move |v| (k, v.0)))
    {
        let mut written = column(ty, true, Some(made(ty, false, 3)));
        let epoch = Epoch::first();
        // After values that are in no page.
        let slots = 2000..2100;
        for slot in slots.clone() {
            written.insert(slot, made(ty, true, slot).as_ref(), epoch.fresh()).unwrap();
        }
        let (image, pager) = TestImage::new(0, keeps);
        let blanks = Blanks { from: slots.end, gap: (10, 2000) };
        let saved = image.save(&pager, |out| written.save(out, &blanks));
        let field = Field {
            ty,
            nullable: true,
            default: None,
            number: FieldNumber(0),
            name: String::new(),
        };
        let loaded = load(&saved, &pager, |input| Column::load(input, &field, false)).unwrap();
        image.set_broken(true);
        assert!(loaded.get(2000).is_err());
        let has_more = ty.is_variable();
        assert_eq!(loaded.clone().clear(2000, &epoch).is_err(), has_more);
        image.set_broken(false);
        let stays: Vec<_> = slots.clone().map(|slot| stays(&loaded, slot).unwrap()).collect();
        assert!(stays.iter().all(|&stays| stays == keeps), "{ty:?} {keeps}");
        image.set_broken(true);
        for slot in slots {
            match loaded.get(slot) {
                Ok(value) => assert_eq!(value, made(ty, true, slot).as_ref()),
                // The cache has but one page.
                Err(_) => assert!(!keeps),
            }
        }
    }
}
