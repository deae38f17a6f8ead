//! Procedures: functions of the server's program that clients call by name.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use annals::internals::upgrade_in;
use annals::typed::{PlainSchema, Transaction as Typed};
use annals::{Abort, Error, ErrorKind, Result, Transaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::{Answer, Refusal};

/// A function that changes a transaction.
pub(crate) trait Procedure: Send + Sync {
    /// Calls it with arguments in JSON; returns the transaction and a result in JSON.
    fn call<'t>(&self, tx: Transaction<'t>, args: &str) -> Answer<(Transaction<'t>, String)>;
}

/// The procedures of a database, by their names.
#[derive(Default)]
pub(crate) struct Procedures(BTreeMap<String, Arc<dyn Procedure>>);

impl fmt::Debug for Procedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl Procedures {
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Adds a procedure; fails if there is one of that name.
    pub(crate) fn add(&mut self, name: &str, procedure: Arc<dyn Procedure>) -> Result<()> {
        match self.0.insert(name.to_owned(), procedure) {
            None => Ok(()),
            Some(_) => {
                let message = format!("two procedures would have the name {name:?}");
                Err(Error::new(ErrorKind::InUse, message))
            }
        }
    }

    pub(crate) fn find(&self, name: &str) -> Answer<Arc<dyn Procedure>> {
        self.0.get(name).cloned().ok_or_else(|| {
            let names: Vec<_> = self.names().collect();
            let known = match names.join(", ") {
                names if names.is_empty() => "this server has none for this database".to_owned(),
                names => format!("the procedures are: {names}"),
            };
            Refusal::not_found(format!("there is no procedure {name:?}; {known}"))
        })
    }
}

/// A function over the types of a schema.
pub(crate) struct OfSchema<S, A, R, F> {
    run: F,
    types: PhantomData<fn(A) -> (R, S)>,
}

impl<S, A, R, F> OfSchema<S, A, R, F> {
    pub(crate) const fn new(run: F) -> Self {
        Self { run, types: PhantomData }
    }
}

impl<S, A, R, F> Procedure for OfSchema<S, A, R, F>
where
    S: PlainSchema,
    A: DeserializeOwned,
    R: Serialize,
    F: Fn(&mut Typed<'_, S>, A) -> Result<R, Abort> + Send + Sync,
{
    fn call<'t>(&self, mut tx: Transaction<'t>, args: &str) -> Answer<(Transaction<'t>, String)> {
        let args =
            serde_json::from_str(args).map_err(|error| Refusal::bad(format!("args: {error}")))?;
        // They are the same, unless another program has upgraded the database meanwhile: then this is an error.
        upgrade_in(&mut tx, S::schema()?)?;
        let mut tx = Typed::<S>::new(tx);
        let result = (self.run)(&mut tx, args).map_err(Abort::into_error)?;
        let result = serde_json::to_string(&result)
            .map_err(|error| Error::invalid(format!("the result isn't JSON: {error}")))?;
        Ok((tx.into_untyped(), result))
    }
}
