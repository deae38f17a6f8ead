//! Random commands: what the schema says next.

use annals::model::OnDelete;
use annals::{Command, ErrorKind, RowId, TableNumber, Type, Value};

use super::model::Rows;
use super::{Step, agree};

const RULES: [OnDelete; 4] =
    [OnDelete::Dangle, OnDelete::Restrict, OnDelete::Cascade, OnDelete::SetNull];

impl Step<'_, '_> {
    /// Applies a random command, which may be one that must be refused.
    pub(super) fn command(&mut self) {
        let command = self.draw();
        let expected = self.expect(&command);
        agree(self.tx.apply_command(&command), expected);
        if expected.is_ok() {
            self.apply(&command);
            self.fill(&command);
        }
    }

    /// Sets a new required reference without a default in each row, as the commit wants it.
    fn fill(&mut self, command: &Command) {
        let Command::AddField { table, ty, nullable: false, default: None, .. } = command else {
            return;
        };
        let field = self.model.fields(table.0).pop().unwrap();
        let is_required = matches!(ty, Type::Reference(..)) && !ty.is_always_nullable();
        let rows: Vec<_> = self.model.rows(table.0).keys().copied().collect();
        for id in rows.into_iter().filter(|_| is_required) {
            let value = self.value(&field);
            agree(self.tx.update(*table, RowId(id), field.number, value.as_ref()), Ok(()));
            self.model.set(table.0, id, field.number, value);
        }
    }

    fn draw(&mut self) -> Command {
        let name = format!("n{}", self.random.below(1 << 40));
        let tables: Vec<_> = self.model.tables.keys().copied().collect();
        if tables.len() < 2 || (tables.len() < 4 && self.random.chance(15)) {
            return Command::CreateTable { name };
        }
        let table = TableNumber(*self.random.pick(&tables));
        let fields = self.model.fields(table.0);
        if fields.len() < 2 || (fields.len() < 7 && self.random.chance(50)) {
            return self.draw_field(table, name, &tables);
        }
        let field = self.random.pick(&fields).number;
        match self.random.below(22) {
            0 => Command::DropTable { table },
            1..4 => Command::DropField { table, field },
            4 => Command::RenameTable { table, name },
            5 => Command::RenameField { table, field, name },
            6..9 => match self.model.schema.indexes() {
                [] => Command::RenameTable { table, name },
                all => Command::DropIndex { index: self.random.pick(all).number },
            },
            9..12 => Command::SetSingleRow { table, single: self.random.chance(50) },
            12..14 => Command::SetHistoryIndex { table, indexed: self.random.chance(50) },
            _ => {
                let mut on = vec![field];
                on.extend(fields.iter().map(|f| f.number).find(|&f| f != field));
                on.truncate(1 + usize::from(self.random.chance(40)));
                Command::CreateIndex {
                    name,
                    table,
                    fields: on,
                    descending: Vec::new(),
                    collated: Vec::new(),
                    unique: self.random.chance(30),
                }
            }
        }
    }

    fn draw_field(&mut self, table: TableNumber, name: String, tables: &[u32]) -> Command {
        let ty = if self.random.chance(50) {
            Type::Reference(TableNumber(*self.random.pick(tables)), *self.random.pick(&RULES))
        } else {
            loop {
                match *self.random.pick(&Type::samples()) {
                    Type::Blob => {}
                    ty => break ty,
                }
            }
        };
        let nullable = self.random.chance(40);
        let default = match ty {
            _ if self.random.chance(50) => None,
            Type::Reference(..) => Some(Value::Reference(RowId(self.random.below(6)))),
            _ => Some(self.random.value(ty, nullable)),
        };
        Command::AddField { table, name, ty, nullable, default }
    }

    fn expect(&self, command: &Command) -> Result<(), ErrorKind> {
        self.model.schema.check(command).map_err(|_| ErrorKind::Invalid)?;
        match command {
            Command::AddField { table, ty, default: Some(Value::Reference(to)), .. } => {
                let Type::Reference(target, rule) = *ty else { unreachable!() };
                let dangles = rule.is_enforced() && !self.model.has(target.0, to.0);
                if dangles && !self.model.rows(table.0).is_empty() {
                    return Err(ErrorKind::Reference);
                }
            }
            Command::CreateIndex { table, fields, unique: true, .. }
                if self.model.is_doubled(table.0, fields) =>
            {
                return Err(ErrorKind::Unique);
            }
            Command::SetSingleRow { table, single: true } if self.model.rows(table.0).len() > 1 => {
                return Err(ErrorKind::Invalid);
            }
            _ => {}
        }
        Ok(())
    }

    fn apply(&mut self, command: &Command) {
        let model = &mut *self.model;
        if let Command::SetSingleRow { table, single: true } = *command
            && model.rows(table.0).is_empty()
        {
            let values = model.fields(table.0).iter().map(annals::Field::default_value).collect();
            let next = model.tables[&table.0].next_id;
            model.insert(table.0, next, values);
        }
        model.schema.apply(command.clone()).unwrap();
        match command {
            Command::CreateTable { .. } => {
                let number = model.schema.tables().last().unwrap().number.0;
                model.tables.insert(number, Rows::default());
            }
            Command::DropTable { table } => drop(model.tables.remove(&table.0)),
            Command::AddField { table, .. } => {
                let field = model.table(table.0).fields.last().unwrap().clone();
                let rows = model.tables.get_mut(&table.0).unwrap().rows.values_mut();
                rows.for_each(|row| drop(row.insert(field.number.0, field.default_value())));
            }
            Command::DropField { table, field } => {
                let rows = model.tables.get_mut(&table.0).unwrap().rows.values_mut();
                rows.for_each(|row| drop(row.remove(&field.0)));
            }
            _ => {}
        }
    }
}
