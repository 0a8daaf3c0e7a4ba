//! The three metrics APIs of the embedded cluster.
