//! Editing: a frame's events with others in the place of some. Unchanged events are copied byte for byte.

use annals::event::Event;
use annals::{Result, RowId, Schema};
use annals_event::{Context, Encoder, Sink, decode_to, opcode};

/// Returns another event in the place of one.
pub(super) trait Edit {
    /// Calls `put` at most once, with an event on the same rows. `schema` is the one before it.
    fn edit(
        &mut self,
        schema: &Schema,
        event: &Event<'_>,
        put: &mut dyn FnMut(&Event<'_>),
    ) -> Result<()>;
}

/// Edits the events of one frame; returns its new payload, or `None` if all of them stay. `schema` is the one before
/// the frame, and is updated.
pub(super) fn edit(
    payload: &[u8],
    schema: &mut Schema,
    edit: &mut impl Edit,
) -> Result<Option<Vec<u8>>> {
    let mut editing = Editing { payload, at: 0, copied: 0, new: None, out: Vec::new(), edit };
    decode_to(payload, 0, schema, &mut editing)?;
    let Editing { copied, mut out, .. } = editing;
    if copied == 0 {
        return Ok(None);
    }
    out.extend_from_slice(payload.get(copied..).unwrap_or_default());
    Ok(Some(out))
}

struct Editing<'e, E> {
    payload: &'e [u8],
    /// Where the next event begins.
    at: usize,
    /// Up to where the payload is in `out`, or was left out.
    copied: usize,
    /// The replacement of the event.
    new: Option<Vec<u8>>,
    out: Vec<u8>,
    edit: &'e mut E,
}

impl<E: Edit> Sink for Editing<'_, E> {
    fn event(&mut self, schema: &Schema, event: &Event<'_>) -> Result<()> {
        let code = self.payload.get(self.at).copied().unwrap_or_default();
        let new = &mut self.new;
        self.edit.edit(schema, event, &mut |event| {
            let mut out = Vec::new();
            encoder(code, event).encode(schema, event, &mut out);
            *new = Some(out);
        })
    }

    fn end(&mut self, left: usize, _: Context) {
        let end = self.payload.len() - left;
        if let Some(new) = self.new.take() {
            self.out.extend_from_slice(self.payload.get(self.copied..self.at).unwrap_or_default());
            self.out.extend_from_slice(&new);
            self.copied = end;
        }
        self.at = end;
    }
}

/// Makes an encoder in the context in which an event has its code.
fn encoder(code: u8, event: &Event<'_>) -> Encoder {
    let (table, id) = match *event {
        Event::Insert { table, id, .. }
        | Event::Update { table, id, .. }
        | Event::UpdateVector { table, id, .. } => (table, id),
        _ => return Encoder::default(),
    };
    let last = match code {
        opcode::APPEND => id.0.checked_sub(1).map(RowId),
        opcode::UPDATE_SAME | opcode::UPDATE_SAME_NULL => Some(id),
        _ => None,
    };
    Encoder::within(table, last)
}

#[cfg(test)]
mod tests {
    use annals::event::Vector;
    use annals::{FieldNumber, TableNumber, Value, ValueRef};
    use annals_event::testing::{Owned, decoded};
    use annals_simulated::Rng;

    use super::*;

    const SCHEMA: &str = "create_table a\nadd_field a n int64 null\nadd_field a s string null\n\
         create_table b\nadd_field b s string null\nadd_field b n int64 null\n";

    fn random_value(rng: &mut Rng, is_text: bool) -> Value {
        match rng.below(4) {
            0 => Value::Null,
            _ if is_text => Value::String("x".repeat(rng.index(300))),
            n => Value::Int64(i64::try_from(rng.below(1 << (10 * n))).unwrap() - 500),
        }
    }

    fn random_event(rng: &mut Rng) -> Owned {
        let (table, field) = (rng.below(2), rng.below(2));
        let is_text = |field: u64| table != field;
        let id = RowId(1 + rng.below(100));
        let count = 1 + rng.below(5);
        let [table, field] = [table, field].map(|number| u32::try_from(number).unwrap());
        let (to, at) = (TableNumber(table), FieldNumber(field));
        let mut value = |field: u32| random_value(rng, is_text(u64::from(field)));
        match id.0 % 7 + count {
            0..=3 => Owned::Insert(to, id, vec![value(0), value(1)]),
            4 | 5 => Owned::Update(to, id, at, value(field)),
            6 => Owned::Delete(to, id),
            7 => Owned::InsertVector(to, id, count),
            8 | 9 => Owned::UpdateVector(to, id, at, (0..count).map(|_| value(field)).collect()),
            10 => Owned::DeleteVector(to, id, count),
            _ => Owned::Comment("a comment".to_owned()),
        }
    }

    fn random_frame(rng: &mut Rng, schema: &Schema) -> (Vec<u8>, Vec<Owned>) {
        let (mut encoder, mut payload) = (Encoder::default(), Vec::new());
        encoder.start_frame();
        let events: Vec<_> = (0..rng.index(40)).map(|_| random_event(rng)).collect();
        events.iter().for_each(|event| event.encode(&mut encoder, schema, &mut payload));
        (payload, events)
    }

    /// Erases the values of rows whose ids are a multiple of a number.
    struct Every(u64);

    impl Every {
        fn edited(&self, event: &Owned) -> Option<Owned> {
            match event.clone() {
                Owned::Insert(table, id, values) if id.0.is_multiple_of(self.0) => {
                    Some(Owned::Insert(table, id, vec![Value::Null; values.len()]))
                }
                Owned::Update(table, id, field, _) if id.0.is_multiple_of(self.0) => {
                    Some(Owned::Update(table, id, field, Value::Null))
                }
                Owned::UpdateVector(table, id, field, mut values) => {
                    let ids = id.0..;
                    for (_, value) in
                        ids.zip(&mut values).filter(|(id, _)| id.is_multiple_of(self.0))
                    {
                        *value = Value::Null;
                    }
                    Some(Owned::UpdateVector(table, id, field, values))
                }
                _ => None,
            }
        }
    }

    impl Edit for Every {
        fn edit(
            &mut self,
            schema: &Schema,
            event: &Event<'_>,
            put: &mut dyn FnMut(&Event<'_>),
        ) -> Result<()> {
            match self.edited(&Owned::of(schema, event)) {
                Some(Owned::Insert(table, id, values)) => {
                    let values = vec![ValueRef::Null; values.len()];
                    put(&Event::Insert { table, id, values: &values });
                }
                Some(Owned::Update(table, id, field, _)) => {
                    put(&Event::Update { table, id, field, value: ValueRef::Null });
                }
                Some(Owned::UpdateVector(table, id, field, values)) => {
                    let values: Vec<_> = values.iter().map(Value::as_ref).collect();
                    let values = Vector::Values(&values);
                    put(&Event::UpdateVector { table, id, field, values });
                }
                _ => {}
            }
            Ok(())
        }
    }

    #[test]
    fn what_is_edited_is_read_again_and_all_else_stays() {
        let text = |events: &[Owned]| events.iter().map(Owned::text).collect::<Vec<_>>();
        let schema = annals_schema::parse(SCHEMA).unwrap().schema;
        let mut edited = 0;
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            for frame in 0..10 {
                let (payload, events) = random_frame(&mut rng, &schema);
                let mut every = Every(1 + seed % 3);
                let expected = events.iter().map(|e| every.edited(e).unwrap_or_else(|| e.clone()));
                let expected: Vec<_> = expected.collect();
                let new = edit(&payload, &mut schema.clone(), &mut every).unwrap();
                edited += u32::from(new.is_some());
                let new = new.unwrap_or(payload);
                let found = decoded(&new, 0, &mut schema.clone()).unwrap();
                assert_eq!(text(&found), text(&expected), "seed {seed}, frame {frame}");
            }
        }
        assert!(edited > 500, "{edited}");
    }
}
