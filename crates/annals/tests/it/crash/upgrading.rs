//! Upgrades of the schema, as a program's next version does them.

use annals::Level;
use annals_simulated::Rng;

use super::changes::{custom, plan_upgrade};
use super::history::State;
use super::world::{Stop, World};

impl World {
    /// Brings the schema up to another one. What it is to be after it is known from a transaction
    /// that does the same and is rolled back, which writes nothing.
    pub(super) fn upgrade(&mut self) -> Result<(), Stop> {
        let Self { database, rng, .. } = self;
        let database = database.as_ref().unwrap();
        let mut planned = None;
        let mut upgrade = || -> annals::Result<()> {
            let mut tx = database.begin()?;
            let drawn = Rng::new(rng.number());
            plan_upgrade(&mut tx, (rng, &mut drawn.clone()))?;
            let (schema, after) = (tx.view().schema().clone(), State::of_transaction(&tx)?);
            tx.rollback()?;
            planned = Some(after);
            database.upgrade(&schema, &mut |_, tx| custom(tx, &mut drawn.clone()))
        };
        let done = upgrade();
        self.settle(done, planned, Some(Level::Checksummed))
    }
}
