//! Class confirm: publisher confirms, an extension.

class! {
    85 "confirm" => Method;

    /// Asks for a confirm of every message published on the channel from now on.
    Select = 10 { [no_wait] }
    /// They will come.
    SelectOk = 11 {}
}
