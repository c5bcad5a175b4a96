//! Class connection: from the handshake to the close.

use deepmq_model::Table;

use super::LongStr;

class! {
    10 "connection" <'a> => Method<'_>;

    /// The server offers what it can: first method of all.
    Start<'a> = 10 {
        version_major: u8,
        version_minor: u8,
        server_properties: Table,
        mechanisms: LongStr<'a>,
        locales: LongStr<'a>,
    }
    /// The client names itself and authenticates.
    StartOk<'a> = 11 {
        client_properties: Table,
        mechanism: &'a str,
        response: LongStr<'a>,
        locale: &'a str,
    }
    /// The server asks for more to authenticate.
    Secure<'a> = 20 { challenge: LongStr<'a>, }
    /// The client gives it.
    SecureOk<'a> = 21 { response: LongStr<'a>, }
    /// The server proposes limits. `frame_max` is in bytes, `heartbeat` in seconds; 0 stands for none.
    Tune = 30 { channel_max: u16, frame_max: u32, heartbeat: u16, }
    /// The client settles them.
    TuneOk = 31 { channel_max: u16, frame_max: u32, heartbeat: u16, }
    /// The client chooses a virtual host. The rest is of the past.
    Open<'a> = 40 { vhost: &'a str, capabilities: &'a str, [insist] }
    /// The connection is open.
    OpenOk<'a> = 41 { known_hosts: &'a str, }
    /// Either side ends the connection; the numbers name the method that caused it, or are 0.
    Close<'a> = 50 { reply_code: u16, reply_text: &'a str, class_id: u16, method_id: u16, }
    /// The other side agrees.
    CloseOk = 51 {}
    /// The server takes no more messages for now (an extension).
    Blocked<'a> = 60 { reason: &'a str, }
    /// It does again.
    Unblocked = 61 {}
    /// The client renews its credentials (an extension).
    UpdateSecret<'a> = 70 { new_secret: LongStr<'a>, reason: &'a str, }
    /// They are accepted.
    UpdateSecretOk = 71 {}
}
