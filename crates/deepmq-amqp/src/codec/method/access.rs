//! Class access: a leftover of AMQP 0-8 that old clients still use.

class! {
    30 "access" <'a> => Method<'_>;

    /// Asks for a ticket.
    Request<'a> = 10 { realm: &'a str, [exclusive, passive, active, write, read] }
    /// Grants it.
    RequestOk = 11 { ticket: u16, }
}
