//! The description of the API, made from the handlers' types.
//!
//! Owns what all paths have in common: the parts of the path, the login and the refusals. Must not describe a single path.

use crate::error::Refusal;
use crate::router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::LazyLock;
use utoipa::ToSchema;
use utoipa::openapi::content::{Content, ContentBuilder};
use utoipa::openapi::path::{HttpMethod, Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{AnyOfBuilder, ArrayItems, ObjectBuilder, Ref, Schema, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Info, OpenApi, PathItem, RefOr, Required, ResponseBuilder};

static TEXT: LazyLock<String> = LazyLock::new(document);

/// Answers that any path may have.
const REFUSALS: [(&str, &str); 7] = [
    ("400", "The request is wrong: a parameter, the body, or what it asks for"),
    ("401", "It is not known who asks, or who asks may not"),
    ("404", "There is no such thing"),
    ("408", "The body did not come in time"),
    ("413", "The body is too large"),
    ("429", "Too many logins from this address were refused"),
    ("503", "The broker cannot do this now"),
];

const LOGIN: &str = "basic";

/// The description of the API in OpenAPI 3.1, as JSON with a line end.
pub fn document() -> String {
    let mut described = router::resources().split_for_parts().1;
    // The router fills in the facts of its own crate.
    described.info = Info::new("DeepMQ", env!("CARGO_PKG_VERSION"));
    described.info.description =
        Some("Management of a DeepMQ broker, with RabbitMQ's paths and names.".into());
    described.servers = None;
    let mut whole = OpenApi::builder().info(described.info.clone()).build().nest("/api", described);
    add_common_parts(&mut whole);
    let mut text = whole.to_pretty_json().expect("a description has the form of JSON");
    text.push('\n');
    text
}

/// The description as an answer.
pub(crate) fn response() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

fn add_common_parts(described: &mut OpenApi) {
    let components = described.components.get_or_insert_default();
    components.schemas.insert(Refusal::name().into(), <Refusal as utoipa::PartialSchema>::schema());
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Basic));
    components.security_schemes.insert(LOGIN.into(), RefOr::T(scheme));
    described.security = Some(vec![SecurityRequirement::new::<_, [&str; 0], &str>(LOGIN, [])]);
    // With `columns`, any field may be left out of an answer.
    let asked: Vec<String> = bodies_asked_for(described);
    if let Some(components) = &mut described.components {
        let answers = components.schemas.iter_mut().filter(|(name, _)| !asked.contains(name));
        answers.for_each(|(_, schema)| require_nothing(schema));
    }
    for (path, item) in &mut described.paths.paths {
        for (method, operation) in operations(item) {
            inline_answers(operation).for_each(require_nothing);
            name_path_parts(path, operation);
            operation.operation_id = Some(operation_id(path, &method));
            for (status, description) in REFUSALS {
                operation.responses.responses.entry(status.into()).or_insert_with(|| refusal(description));
            }
        }
    }
}

fn operations(item: &mut PathItem) -> Vec<(HttpMethod, &mut Operation)> {
    let PathItem { get, put, post, delete, .. } = item;
    let methods = [
        (HttpMethod::Get, get),
        (HttpMethod::Put, put),
        (HttpMethod::Post, post),
        (HttpMethod::Delete, delete),
    ];
    methods.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?))).collect()
}

/// Every `{part}` of a path is a string.
fn name_path_parts(path: &str, operation: &mut Operation) {
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters = operation.parameters.get_or_insert_default();
    for (at, part) in parts.enumerate() {
        let schema = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).build();
        let parameter = ParameterBuilder::new()
            .name(part)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(schema))
            .build();
        parameters.insert(at, RefOr::T(parameter));
    }
}

/// One per method and path: the words of the path, and of what stands in it.
fn operation_id(path: &str, method: &HttpMethod) -> String {
    let method = match method {
        HttpMethod::Put => "put",
        HttpMethod::Post => "post",
        HttpMethod::Delete => "delete",
        _ => "get",
    };
    let words = path.trim_start_matches("/api/").split('/').map(|part| part.trim_matches(['{', '}']));
    words.fold(method.to_owned(), |id, word| format!("{id}_{}", word.replace('-', "_")))
}

fn refusal(description: &str) -> RefOr<utoipa::openapi::Response> {
    let schema = Ref::from_schema_name(Refusal::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new().description(description).content("application/json", content).build().into()
}

/// The names of the schemas that requests bring.
fn bodies_asked_for(described: &mut OpenApi) -> Vec<String> {
    let operations = described.paths.paths.values_mut().flat_map(operations);
    let bodies = operations.filter_map(|(_, operation)| match operation.request_body.as_ref()? {
        RefOr::T(body) => Some(body),
        RefOr::Ref(_) => None,
    });
    let contents = bodies.flat_map(|body| body.content.values());
    let names = contents.filter_map(|content| match content {
        RefOr::T(Content { schema: Some(RefOr::Ref(schema)), .. }) => {
            schema.ref_location.rsplit('/').next().map(str::to_owned)
        }
        _ => None,
    });
    names.collect()
}

/// An answer that may lack any field. Without them several alternatives can fit, and so one of them is enough.
fn require_nothing(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            object.required.clear();
            object.properties.values_mut().for_each(require_nothing);
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                require_nothing(items);
            }
        }
        Schema::AllOf(all) => all.items.iter_mut().for_each(require_nothing),
        Schema::AnyOf(any) => any.items.iter_mut().for_each(require_nothing),
        Schema::OneOf(one) => {
            one.items.iter_mut().for_each(require_nothing);
            let any = AnyOfBuilder::new().description(one.description.take());
            let any = std::mem::take(&mut one.items).into_iter().fold(any, AnyOfBuilder::item);
            *schema = Schema::AnyOf(any.build());
        }
        _ => {}
    }
}

/// The schemas that stand in the answers themselves.
fn inline_answers(operation: &mut Operation) -> impl Iterator<Item = &mut RefOr<Schema>> {
    let responses = operation.responses.responses.values_mut();
    let responses = responses.filter_map(|response| match response {
        RefOr::T(response) => Some(response),
        RefOr::Ref(_) => None,
    });
    let contents = responses.flat_map(|response| response.content.values_mut());
    contents.filter_map(|content| match content {
        RefOr::T(content) => content.schema.as_mut(),
        RefOr::Ref(_) => None,
    })
}
