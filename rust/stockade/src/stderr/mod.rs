//! A server's stderr: a bounded ring of lines, and text that is safe to show.

mod ring;
pub mod text;

pub use ring::{Batch, DEFAULT_BYTES, DEFAULT_LINES, MAX_LINE, Overwritten, Ring};
