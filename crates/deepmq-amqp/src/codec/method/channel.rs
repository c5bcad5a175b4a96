//! Class channel: opening, pausing and closing one.

use super::LongStr;

class! {
    20 "channel" <'a> => Method<'_>;

    /// Opens the channel. The argument is of the past.
    Open<'a> = 10 { out_of_band: &'a str, }
    /// It is open. The argument is of the past.
    OpenOk<'a> = 11 { channel_id: LongStr<'a>, }
    /// Pauses or resumes the flow of contents.
    Flow = 20 { [active] }
    /// It is paused or resumed.
    FlowOk = 21 { [active] }
    /// Either side ends the channel; the numbers name the method that caused it, or are 0.
    Close<'a> = 40 { reply_code: u16, reply_text: &'a str, class_id: u16, method_id: u16, }
    /// The other side agrees.
    CloseOk = 41 {}
}
