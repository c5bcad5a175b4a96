//! A login by form, for pages that ask for a name and a password before they ask for anything else.
//!
//! Owns `/login`. It gives no cookie and no token: each request says who asks, so that no other site can ask in a user's name.

use super::overview::WhoAmI;
use crate::api::Api;
use crate::auth::{self, Caller};
use crate::error::{ApiError, ApiResult};
use crate::peer::Peer;
use crate::request::read;
use axum::Json;
use axum::extract::{Request, State};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use utoipa::ToSchema;

/// The largest form, in bytes: a name and a password of any length that AMQP can carry, percent-encoded.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// A name and a password
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "it describes what is read field by field")]
pub(crate) struct LoginForm {
    username: String,
    password: String,
}

/// Check a name and a password; tells who that is
#[utoipa::path(post, path = "/login", tag = "overview",
    request_body(content = LoginForm, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, body = WhoAmI)))]
pub(crate) async fn login(State(api): State<Api>, request: Request) -> ApiResult<Json<WhoAmI>> {
    let peer = request.extensions().get::<Peer>().copied().ok_or_else(|| ApiError::unknown_caller(true))?;
    let body = read(request.into_body(), FORM_BYTES_MAX).await?;
    let form = std::str::from_utf8(&body).map_err(|_| ApiError::bad_request("the form is not text"))?;
    let (Some(user), Some(password)) = (field(form, "username"), field(form, "password")) else {
        return Err(ApiError::unknown_caller(true));
    };
    let user = String::from_utf8(user).map_err(|_| ApiError::unknown_caller(false))?;
    let user = auth::login_by_form(&api, user, password, peer).await?;
    Ok(Json(WhoAmI::of(&Caller::new(user))))
}

/// The decoded value of a form's field.
fn field(form: &str, name: &str) -> Option<Vec<u8>> {
    let mut fields = form.split('&').filter_map(|field| field.split_once('='));
    let (_, value) = fields.find(|(known, _)| *known == name)?;
    Some(percent_decode_str(&value.replace('+', " ")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_as_browsers_encode_them() {
        let form = "username=a%26b+c&password=%FF&empty=";
        assert_eq!(field(form, "username"), Some(b"a&b c".to_vec()));
        assert_eq!(field(form, "password"), Some(vec![0xff]));
        assert_eq!((field(form, "empty"), field(form, "none")), (Some(vec![]), None));
    }
}
