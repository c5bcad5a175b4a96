//! Reading a document, entry by entry, so that what is wrong or unknown is told by its place.
//!
//! Owns what is taken and what is only noted. Must not know a broker.

use super::DefinitionsError;
use super::document::{Definitions, Scope};
use super::entries::{KEYS, QueueEntry};
use deepmq_model::Name;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What says where a document came from.
const ORIGINS: [&str; 11] = [
    "rabbit_version",
    "rabbitmq_version",
    "lavinmq_version",
    "product_name",
    "product_version",
    "rabbitmq_definition_format",
    "original_cluster_name",
    "original_vhost_name",
    "explanation",
    "vhost",
    "metadata",
];
/// The parts that a document of one vhost has.
const WITHIN: [&str; 5] = ["parameters", "policies", "exchanges", "queues", "bindings"];

struct Reader {
    document: Map<String, Value>,
    vhost: Option<Name>,
    notes: Vec<String>,
}

impl Definitions {
    /// Reads a document. In the scope of a vhost, its entries are for that vhost, whatever vhost they name.
    ///
    /// # Errors
    /// If it is no JSON, or an entry does not have its form.
    pub fn read(text: &[u8], scope: Scope) -> Result<Self, DefinitionsError> {
        let document = serde_json::from_slice(text).map_err(|error| DefinitionsError::Json {
            line: error.line(),
            column: error.column(),
            why: error.to_string(),
        })?;
        Self::from_json(document, scope)
    }

    /// As [`Definitions::read`], of what was parsed already.
    ///
    /// # Errors
    /// If an entry does not have its form.
    pub fn from_json(document: Value, scope: Scope) -> Result<Self, DefinitionsError> {
        let Value::Object(document) = document else {
            return Err(DefinitionsError::Form {
                path: "the document".to_owned(),
                why: "not a JSON object".to_owned(),
            });
        };
        let vhost = match &scope {
            Scope::Broker => None,
            Scope::Vhost(name) => Some(name.clone()),
        };
        let mut reader = Reader { document, vhost, notes: Vec::new() };
        let mut definitions = Self {
            users: reader.part("users")?,
            vhosts: reader.part("vhosts")?,
            permissions: reader.part("permissions")?,
            topic_permissions: reader.part("topic_permissions")?,
            parameters: reader.part("parameters")?,
            global_parameters: reader.part("global_parameters")?,
            policies: reader.part("policies")?,
            queues: reader.part::<TypedQueue>("queues")?.into_iter().map(QueueEntry::from).collect(),
            exchanges: reader.part("exchanges")?,
            bindings: reader.part("bindings")?,
            scope,
            ..Self::default()
        };
        let unknown = reader.document.keys().filter(|key| !ORIGINS.contains(&key.as_str()));
        let unknown = unknown.map(|key| format!("{key}: an unknown key"));
        definitions.notes = reader.notes.into_iter().chain(unknown).collect();
        Ok(definitions)
    }
}

impl Reader {
    /// Takes the entries of one part out of the document.
    fn part<T: DeserializeOwned>(&mut self, name: &'static str) -> Result<Vec<T>, DefinitionsError> {
        let entries = match self.document.remove(name) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(form(name.to_owned(), "not a list")),
        };
        if self.vhost.is_some() && !WITHIN.contains(&name) {
            if !entries.is_empty() {
                self.notes.push(format!("{name}: not of a vhost"));
            }
            return Ok(Vec::new());
        }
        entries.into_iter().enumerate().map(|(at, entry)| self.entry(name, at, entry)).collect()
    }

    fn entry<T: DeserializeOwned>(
        &mut self,
        part: &'static str,
        at: usize,
        entry: Value,
    ) -> Result<T, DefinitionsError> {
        let path = format!("{part}[{at}]");
        let Value::Object(mut fields) = entry else { return Err(form(path, "not a JSON object")) };
        let known = KEYS.iter().find(|(name, _)| *name == part).map_or(&[][..], |(_, keys)| *keys);
        let unknown = fields.keys().filter(|key| !known.contains(&key.as_str()));
        self.notes.extend(unknown.map(|key| format!("{path}.{key}: an unknown key")));
        if let Some(vhost) = &self.vhost {
            fields.insert("vhost".to_owned(), (&**vhost).into());
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| form(path, &error.to_string()))
    }
}

fn form(path: String, why: &str) -> DefinitionsError {
    DefinitionsError::Form { path, why: why.to_owned() }
}

/// A queue with its type beside its arguments, as newer versions write it.
#[derive(serde::Deserialize)]
struct TypedQueue {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(flatten)]
    queue: QueueEntry,
}

impl From<TypedQueue> for QueueEntry {
    fn from(typed: TypedQueue) -> Self {
        let TypedQueue { kind, mut queue } = typed;
        // Without the argument a queue is a classic one.
        if let Some(kind) = kind.filter(|kind| kind != "classic") {
            queue.arguments.entry("x-queue-type").or_insert(kind.into());
        }
        queue
    }
}
