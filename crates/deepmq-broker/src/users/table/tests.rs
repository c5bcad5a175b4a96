//! Who is let in, and at which cost.

use deepmq_storage::seam::SeededRandom;

use super::*;
use crate::users::UserSpec;

fn plain(password: &str) -> Password {
    Password::Plain(Secret::new(password))
}

fn users(specs: Vec<UserSpec>) -> Users {
    let users = Users::new(Arc::new(SeededRandom::new(1)));
    specs.into_iter().for_each(|spec| put(&users, spec));
    users
}

fn put(users: &Users, spec: UserSpec) {
    let UserSpec { name, password, tags, loopback_only, .. } = spec;
    let (hash, plain) = users.hash(password);
    users.set(User { name: name.clone(), tags, loopback_only }, hash.clone());
    plain.iter().for_each(|plain| users.remember(&name, &hash, plain));
}

#[test]
fn guest_logs_in_from_loopback_only_whatever_the_password() {
    let users = users(vec![UserSpec::guest()]);
    assert_eq!(&*users.authenticate_slow("guest", b"guest", true).unwrap().name, "guest");
    assert_eq!(users.authenticate_fast("guest", b"guest", false), None);
    assert_eq!(users.authenticate_slow("guest", b"guest", false), Err(AuthError::LoopbackOnly));
    assert_eq!(users.authenticate_slow("guest", b"wrong", false), Err(AuthError::LoopbackOnly));
}

#[test]
fn guest_logs_in_from_afar_when_configured_to() {
    let users = users(vec![UserSpec { loopback_only: false, ..UserSpec::guest() }]);
    assert!(users.authenticate_slow("guest", b"guest", false).is_ok());
}

#[test]
fn a_wrong_or_empty_password_and_an_unknown_user_are_refused() {
    let users = users(vec![UserSpec::new("ann", plain("right"))]);
    assert_eq!(users.authenticate_slow("ann", b"wrong", true), Err(AuthError::WrongPassword));
    assert_eq!(users.authenticate_slow("ann", b"", true), Err(AuthError::WrongPassword));
    assert_eq!(users.authenticate_slow("bob", b"right", true), Err(AuthError::UnknownUser));
}

#[test]
fn the_fast_path_answers_only_after_a_first_success_and_only_for_the_right_password() {
    let stored = Password::Hash(PasswordHash::of(b"right", &SeededRandom::new(2)));
    let users = users(vec![UserSpec::new("ann", stored)]);
    assert_eq!(users.authenticate_fast("ann", b"right", true), None);
    users.authenticate_slow("ann", b"wrong", true).unwrap_err();
    assert_eq!(users.authenticate_fast("ann", b"wrong", true), None);
    users.authenticate_slow("ann", b"right", true).unwrap();
    assert_eq!(users.authenticate_fast("ann", b"right", true), users.get("ann"));
    assert_eq!(users.authenticate_fast("ann", b"wrong", true), None);
    assert_eq!(users.authenticate_slow("ann", b"wrong", true), Err(AuthError::WrongPassword));
}

#[test]
fn a_password_given_in_plain_is_known_from_the_start() {
    let users = users(vec![UserSpec::new("ann", plain("right")), UserSpec::guest()]);
    assert_eq!(users.authenticate_fast("ann", b"right", true), users.get("ann"));
    assert_eq!(users.authenticate_fast("guest", b"guest", true), users.get("guest"));
    assert_eq!(users.authenticate_fast("ann", b"wrong", true), None);
    assert_eq!(users.authenticate_slow("guest", b"wrong", true), Err(AuthError::WrongPassword));
}

#[test]
fn changing_the_password_drops_what_was_known_of_the_old_one() {
    let users = users(vec![UserSpec::new("ann", plain("old"))]);
    users.authenticate_slow("ann", b"old", true).unwrap();
    put(&users, UserSpec::new("ann", plain("new")));
    assert_eq!(users.authenticate_fast("ann", b"old", true), None);
    assert_eq!(users.authenticate_slow("ann", b"old", true), Err(AuthError::WrongPassword));
    assert!(users.authenticate_slow("ann", b"new", true).is_ok());
}

#[test]
fn every_refusal_does_the_work_of_one_verification() {
    use crate::users::password::ARGON2_WORK;
    let sha256 = PasswordHash::read(
        "rabbit_password_hashing_sha256",
        "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR",
    );
    let rabbit = UserSpec::new("rabbit", Password::Hash(sha256.unwrap()));
    let locked = UserSpec::new("locked", Password::Hash(PasswordHash::nothing()));
    let users = users(vec![UserSpec::guest(), UserSpec::new("ann", plain("right")), rabbit, locked]);
    users.authenticate_slow("guest", b"guest", true).unwrap();
    // Counted, not timed: a busy machine would tell anything.
    for name in ["ann", "rabbit", "locked", "guest", "nobody"] {
        for password in ["wrong", "guest", ""] {
            let before = ARGON2_WORK.get();
            users.authenticate_slow(name, password.as_bytes(), false).unwrap_err();
            assert_eq!(ARGON2_WORK.get() - before, 1, "{name}/{password}");
        }
    }
}

#[test]
fn a_stored_hash_serves_as_password() {
    let hash = PasswordHash::of(b"right", &SeededRandom::new(2)).to_string();
    let stored = Password::Hash(PasswordHash::parse(&hash).unwrap());
    let users = users(vec![UserSpec::new("ann", stored)]);
    assert!(users.authenticate_slow("ann", b"right", true).is_ok());
    assert_eq!(users.authenticate_slow("ann", hash.as_bytes(), true), Err(AuthError::WrongPassword));
}

#[test]
fn a_user_without_a_password_or_with_an_empty_one_does_not_log_in() {
    let users = users(vec![UserSpec::new("ann", Password::Hash(PasswordHash::nothing()))]);
    for password in ["", "any"] {
        let refused = users.authenticate_slow("ann", password.as_bytes(), true);
        assert_eq!(refused, Err(AuthError::WrongPassword), "{password}");
    }
}

#[test]
fn a_change_that_keeps_the_password_keeps_what_is_known_of_it() {
    let stored = PasswordHash::of(b"right", &SeededRandom::new(2));
    let users = users(vec![UserSpec::new("ann", Password::Hash(stored.clone()))]);
    users.authenticate_slow("ann", b"right", true).unwrap();
    users.set(User { name: "ann".into(), tags: vec!["monitoring".into()], loopback_only: false }, stored);
    assert!(users.authenticate_fast("ann", b"right", true).unwrap().has_tag("monitoring"));
    users.remove("ann");
    assert_eq!(users.authenticate_slow("ann", b"right", true), Err(AuthError::UnknownUser));
}
