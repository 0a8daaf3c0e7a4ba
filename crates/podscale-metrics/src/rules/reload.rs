//! New rules while everything runs: a file that is wrong changes nothing.

use super::engine::Engine;
use super::{RuleError, RuleSet};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// It is the one that was given last.
    Unchanged,
    /// Its rules are in use.
    Replaced {
        /// How many rules of custom and of external metrics there are.
        rules: usize,
        /// What is allowed and hardly meant.
        warnings: Vec<RuleError>,
    },
    /// It is wrong; the rules before it stay in use.
    Kept(Vec<RuleError>),
}

/// Gives an engine the rules of texts, whichever way these come.
pub struct Reloader {
    engine: Arc<Engine>,
    last: Mutex<Option<[u8; 32]>>,
}

impl Reloader {
    /// No text was given yet.
    #[must_use]
    pub fn new(engine: Arc<Engine>) -> Reloader {
        Reloader { engine, last: Mutex::default() }
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Takes in a text.
    pub fn load(&self, text: &str) -> Reloaded {
        let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        if self.last.lock().replace(hash) == Some(hash) {
            return Reloaded::Unchanged;
        }
        match RuleSet::parse_edit(text) {
            Ok(rules) => {
                let (count, warnings) =
                    (rules.custom().len() + rules.external().len(), rules.warnings().to_vec());
                self.engine.replace(rules);
                Reloaded::Replaced { rules: count, warnings }
            }
            Err(errors) => Reloaded::Kept(errors),
        }
    }
}
