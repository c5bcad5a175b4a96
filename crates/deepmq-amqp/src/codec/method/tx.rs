//! Class tx: transactions on a channel.

class! {
    90 "tx" => Method;

    /// Makes the channel transactional.
    Select = 10 {}
    /// It is.
    SelectOk = 11 {}
    /// Makes everything since the last commit or rollback take effect.
    Commit = 20 {}
    /// It has.
    CommitOk = 21 {}
    /// Drops everything since the last commit or rollback.
    Rollback = 30 {}
    /// It is dropped.
    RollbackOk = 31 {}
}
