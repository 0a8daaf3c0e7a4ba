//! Changes of single fields, as `--set spec.maxReplicas=20` gives them.

use serde_json::Value;

/// One change: where, and to what.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    path: Vec<Segment>,
    text: String,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Field(String),
    Place(usize),
}

/// Why a change makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// It is not of the form `path=value`.
    #[error("{0:?} is not a change such as spec.maxReplicas=20 or spec.metrics[0].type=Pods")]
    Form(String),
    /// The object has nothing at that place.
    #[error("{0}: there is no such place in the object")]
    Place(String),
    /// The object has no such field.
    #[error("{0}: there is no such field")]
    Field(String),
}

impl Edit {
    /// Reads a change such as `spec.behavior.scaleDown.stabilizationWindowSeconds=60`. The value is
    /// JSON, or else text.
    ///
    /// # Errors
    /// It is not of that form.
    pub fn parse(text: &str) -> Result<Edit, EditError> {
        let form = || EditError::Form(text.to_owned());
        let (path, value) = text.split_once('=').ok_or_else(form)?;
        let mut segments = Vec::new();
        for part in path.split('.') {
            let (field, places) = part.split_once('[').map_or((part, ""), |(f, p)| (f, p));
            if field.is_empty() {
                return Err(form());
            }
            segments.push(Segment::Field(field.to_owned()));
            for place in places.split('[').filter(|place| !place.is_empty()) {
                let place = place.strip_suffix(']').and_then(|place| place.parse().ok());
                segments.push(Segment::Place(place.ok_or_else(form)?));
            }
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok(Edit { path: segments, text: path.to_owned(), value })
    }

    /// Where it changes something.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.text
    }

    /// Makes the change; objects on the way are created, lists are not. What is a text stays one: the metadata of
    /// triggers have numbers as texts.
    ///
    /// # Errors
    /// The object has nothing at that place.
    pub fn apply(&self, object: &mut Value) -> Result<(), EditError> {
        let wrong = || EditError::Place(self.text.clone());
        let mut at = object;
        for segment in &self.path {
            at = match segment {
                Segment::Field(field) => {
                    if at.is_null() {
                        *at = Value::Object(serde_json::Map::new());
                    }
                    at.as_object_mut().ok_or_else(wrong)?.entry(field).or_insert(Value::Null)
                }
                Segment::Place(place) => at.get_mut(place).ok_or_else(wrong)?,
            };
        }
        *at = match (&*at, &self.value) {
            (Value::String(_), Value::Number(_) | Value::Bool(_)) => {
                Value::from(self.value.to_string())
            }
            (_, value) => value.clone(),
        };
        Ok(())
    }

    /// Whether an object that was read and written again still has the field; a name that does not
    /// exist is passed over in reading.
    ///
    /// # Errors
    /// It does not.
    pub fn confirm(&self, object: &Value) -> Result<(), EditError> {
        let mut at = object;
        for segment in &self.path {
            let next = match segment {
                Segment::Field(field) => at.get(field),
                Segment::Place(place) => at.get(place),
            };
            match next {
                Some(next) => at = next,
                None if self.value.is_null() => return Ok(()),
                None => return Err(EditError::Field(self.text.clone())),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_changed_by_their_path() {
        let object = json!({"spec": {"maxReplicas": 5, "metrics": [{"type": "Resource"}],
            "triggers": [{"metadata": {"listLength": "5"}}]}});
        for (edit, pointer, expected) in [
            ("spec.maxReplicas=20", "/spec/maxReplicas", json!(20)),
            ("spec.metrics[0].type=Pods", "/spec/metrics/0/type", json!("Pods")),
            (
                "spec.behavior.scaleDown.stabilizationWindowSeconds=60",
                "/spec/behavior/scaleDown/stabilizationWindowSeconds",
                json!(60),
            ),
            (
                "spec.triggers[0].metadata.listLength=7",
                "/spec/triggers/0/metadata/listLength",
                json!("7"),
            ),
            ("spec.behavior={\"scaleUp\":null}", "/spec/behavior/scaleUp", json!(null)),
        ] {
            let mut object = object.clone();
            let edit = Edit::parse(edit).expect(edit);
            edit.apply(&mut object).expect("a place");
            assert_eq!(object.pointer(pointer), Some(&expected), "{edit:?}");
            edit.confirm(&object).expect("it is there");
        }
    }

    #[test]
    fn changes_that_make_no_sense_are_refused() {
        for text in ["spec.maxReplicas", "=3", "a..b=1", "a[x]=1", "a[1=1"] {
            assert!(matches!(Edit::parse(text), Err(EditError::Form(_))), "{text}");
        }
        let mut object = json!({"spec": {"metrics": [], "maxReplicas": 1}});
        for text in ["spec.metrics[0].type=Pods", "spec.maxReplicas.low=1"] {
            let applied = Edit::parse(text).expect(text).apply(&mut object.clone());
            assert!(matches!(applied, Err(EditError::Place(_))), "{text}");
        }
        let edit = Edit::parse("spec.maxReplica=1").expect("a change");
        edit.apply(&mut object).expect("a place");
        let error = edit.confirm(&json!({"spec": {"maxReplicas": 1}})).expect_err("no such field");
        assert_eq!(error.to_string(), "spec.maxReplica: there is no such field");
    }
}
