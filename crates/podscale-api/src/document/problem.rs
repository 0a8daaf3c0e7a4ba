//! What is wrong with a document that is no YAML, in words for people who write manifests.

use serde_saphyr::granit_parser::ErrorKind;
use serde_saphyr::{Error, ExternalMessageSource};

/// Why a document cannot be read.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => words(error),
        Error::ExternalMessage { source, msg, .. } => match &**source {
            ExternalMessageSource::Parser(scan) => {
                syntax(scan.kind()).unwrap_or_else(|| msg.clone())
            }
            _ => msg.clone(),
        },
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the field {key:?} is there twice")
        }
        Error::DuplicateMappingKey { .. } => "a field is there twice".to_owned(),
        Error::Eof { .. } => "it ends too early".to_owned(),
        Error::UnknownAnchor { .. } => UNKNOWN_ANCHOR.to_owned(),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            "what << merges must be a map, or a list of maps".to_owned()
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::Budget { .. } => {
            "it is too large, too deeply nested, or its aliases stand for too much".to_owned()
        }
        Error::NonFiniteFloat { value, .. } => {
            format!("{value} is no finite number; put it into quotes if it is a text")
        }
        Error::SerdeInvalidType { unexpected, .. } => {
            format!("a text is needed here, not {unexpected}; put it into quotes if it is one")
        }
        other => first_line(other),
    }
}

const UNKNOWN_ANCHOR: &str = "this alias (*) names no anchor (&) before it";
const BLOCK_TEXT: &str =
    "this text after | or > must be indented with spaces, all lines by as many";
const TAB: &str = "a tab cannot indent; use spaces";

/// The library's own words without the place, which is told apart from them.
fn first_line(error: &Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    match first.split_once(": ") {
        Some((place, rest)) if place.starts_with("line ") => rest.to_owned(),
        _ => first.to_owned(),
    }
}

/// The mistakes that people make; nothing for the rest.
fn syntax(kind: &ErrorKind) -> Option<String> {
    use ErrorKind as K;
    let words = match kind {
        K::UnexpectedEofFlowSequence => "a [ is never closed",
        K::UnexpectedEofFlowMapping | K::UnexpectedEofImplicitFlowMapping => "a { is never closed",
        K::MisplacedFlowCollectionEnd => "this bracket closes nothing",
        K::ExpectedFlowSequenceSeparator => "a comma or a ] is missing before this",
        K::ExpectedFlowMappingSeparator => "a comma or a } is missing before this",
        K::UnclosedQuotedScalar => "a quote is never closed",
        K::InvalidTrailingSingleQuotedScalar | K::InvalidTrailingDoubleQuotedScalar => {
            "nothing may follow a closing quote but a comment"
        }
        K::UnknownQuotedScalarEscape
        | K::InvalidQuotedScalarHexEscape
        | K::InvalidUnicodeEscape => {
            "there is no such escape after \\ in double quotes; single quotes need none"
        }
        K::TabNotAllowed | K::TabInBlockIndentation | K::TabInIndentation | K::TabInPlainScalar => {
            TAB
        }
        K::UnexpectedEofBlockSequence
        | K::UnexpectedEofBlockMapping
        | K::UnexpectedEof
        | K::UnexpectedEndOfPlainScalar => "it ends too early",
        K::UnknownAnchor => UNKNOWN_ANCHOR,
        K::ExpectedBlockMappingKey | K::ExpectedBlockSequenceEntry => {
            "this is neither indented as the lines above nor a field or an item of what they begin"
        }
        K::InvalidQuotedScalarIndent => {
            "a quote is never closed, or the next line of its text is not indented"
        }
        K::InvalidIndentation | K::InvalidFlowScalarIndent => "this is indented wrongly",
        K::SimpleKeyExpected | K::InvalidSimpleKey => {
            "a colon and a space are missing after this field"
        }
        K::MappingValueNotAllowed | K::InvalidColonPlacement => {
            "no value may begin here: it is indented wrongly, or its text has a colon and needs quotes"
        }
        K::MappingKeyNotAllowed => "no field may begin here",
        K::InvalidMappingValueWhitespace => "a space is missing after this colon",
        K::BlockSequenceEntryNotAllowed | K::BlockEntryInFlowCollection => {
            "no item of a list may begin here"
        }
        K::InvalidBlockEntryWhitespace => "a space is missing after this dash",
        K::InvalidBlockScalarHeader => "only a comment may follow | or > in its line",
        K::InvalidBlockScalarIndent | K::TabAtBlockScalarStart | K::ZeroBlockScalarIndent => {
            BLOCK_TEXT
        }
        K::DocumentIndicatorInQuotedScalar => "a quote is not closed before the next document",
        K::CommentNotSeparated => "a space is missing before this #",
        other => return with_characters(other),
    };
    Some(words.to_owned())
}

/// Those that say which character it is about.
fn with_characters(kind: &ErrorKind) -> Option<String> {
    Some(match kind {
        ErrorKind::UnclosedFlowCollection { open } => format!("a {open} is never closed"),
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            format!("a {open} cannot be closed by {close}")
        }
        ErrorKind::UnexpectedCharacter { character } => {
            format!("a value cannot begin with {character}; put it into quotes")
        }
        _ => return None,
    })
}
