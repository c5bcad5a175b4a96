//! Class exchange: declaring, deleting and binding exchanges.

use deepmq_model::Table;

class! {
    40 "exchange" <'a> => Method<'_>;

    /// Creates an exchange or checks that it is there.
    Declare<'a> = 10 {
        ticket: u16,
        exchange: &'a str,
        kind: &'a str,
        [passive, durable, auto_delete, internal, no_wait],
        arguments: Table,
    }
    /// It is there.
    DeclareOk = 11 {}
    /// Deletes an exchange.
    Delete<'a> = 20 { ticket: u16, exchange: &'a str, [if_unused, no_wait] }
    /// It is gone.
    DeleteOk = 21 {}
    /// Binds an exchange to another (an extension).
    Bind<'a> = 30 {
        ticket: u16,
        destination: &'a str,
        source: &'a str,
        routing_key: &'a [u8],
        [no_wait],
        arguments: Table,
    }
    /// It is bound.
    BindOk = 31 {}
    /// Removes such a binding (an extension).
    Unbind<'a> = 40 {
        ticket: u16,
        destination: &'a str,
        source: &'a str,
        routing_key: &'a [u8],
        [no_wait],
        arguments: Table,
    }
    /// It is removed.
    UnbindOk = 51 {}
}
