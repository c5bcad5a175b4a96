//! A message's properties in JSON.
//!
//! Owns their names and the checks that AMQP makes too. Must not know their encoding.

use crate::arguments::Arguments;
use crate::error::{ApiError, ApiResult};
use deepmq_model::message::properties::{self as model, Text};
use deepmq_model::topology::NAME_BYTES_MAX;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Ten years in milliseconds: the longest time a message may be told to live.
const EXPIRATION_MS_MAX: u64 = 315_360_000_000;

/// What a message says of itself
#[derive(Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct Properties {
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Arguments>,
    /// 2 is persistent
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_mode: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    /// Milliseconds, as text
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    /// Seconds since 1970
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_id: Option<String>,
}

/// Reads an object; or an empty array, which is how some tools write an empty object.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Properties, D::Error> {
    deserializer.deserialize_any(Given)
}

/// Tells the one from the other by how it begins, so that a wrong field is refused by what is wrong with it.
struct Given;

impl<'de> Visitor<'de> for Given {
    type Value = Properties;

    fn expecting(&self, expected: &mut fmt::Formatter<'_>) -> fmt::Result {
        expected.write_str("an object of properties")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Properties, A::Error> {
        Properties::deserialize(MapAccessDeserializer::new(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Properties, A::Error> {
        match items.next_element::<IgnoredAny>()? {
            None => Ok(Properties::default()),
            Some(_) => Err(A::Error::invalid_type(Unexpected::Seq, &self)),
        }
    }
}

impl Properties {
    /// Checks what has a meaning for the broker, and encodes.
    pub(super) fn encode(self, user: &str, depth_max: usize) -> ApiResult<Vec<u8>> {
        if let Some(claimed) = self.user_id.as_deref().filter(|claimed| *claimed != user) {
            let reason = format!("user_id property set to '{claimed}' but authenticated user was '{user}'");
            return Err(ApiError::bad_request(reason));
        }
        if let Some(expiration) = &self.expiration
            && !expiration.parse::<u64>().is_ok_and(|ms| ms <= EXPIRATION_MS_MAX)
        {
            return Err(ApiError::bad_request(format!("invalid expiration '{expiration}'")));
        }
        let properties = model::Properties {
            content_type: text(self.content_type)?,
            content_encoding: text(self.content_encoding)?,
            headers: self.headers.map(|headers| headers.checked(depth_max)).transpose()?,
            delivery_mode: self.delivery_mode,
            priority: self.priority,
            correlation_id: text(self.correlation_id)?,
            reply_to: text(self.reply_to)?,
            expiration: text(self.expiration)?,
            message_id: text(self.message_id)?,
            timestamp: self.timestamp,
            kind: text(self.kind)?,
            user_id: text(self.user_id)?,
            app_id: text(self.app_id)?,
            cluster_id: text(self.cluster_id)?,
        };
        let mut encoded = Vec::new();
        properties.encode(&mut encoded);
        Ok(encoded)
    }

    /// From validated properties.
    pub(super) fn decode(encoded: &[u8]) -> Self {
        let properties = model::Properties::decode(encoded).unwrap_or_default();
        let shown = |text: Option<Text>| text.map(|text| String::from_utf8_lossy(&text).into_owned());
        Self {
            content_type: shown(properties.content_type),
            content_encoding: shown(properties.content_encoding),
            headers: properties.headers.map(Arguments),
            delivery_mode: properties.delivery_mode,
            priority: properties.priority,
            correlation_id: shown(properties.correlation_id),
            reply_to: shown(properties.reply_to),
            expiration: shown(properties.expiration),
            message_id: shown(properties.message_id),
            timestamp: properties.timestamp,
            kind: shown(properties.kind),
            user_id: shown(properties.user_id),
            app_id: shown(properties.app_id),
            cluster_id: shown(properties.cluster_id),
        }
    }
}

fn text(given: Option<String>) -> ApiResult<Option<Text>> {
    match given {
        Some(given) if given.len() > NAME_BYTES_MAX => {
            Err(ApiError::bad_request("a property is longer than 255 bytes"))
        }
        given => Ok(given.map(|given| given.into_bytes().into())),
    }
}
