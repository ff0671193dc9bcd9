//! The flaws, each with the check that it fails.

macro_rules! flaws {
    ($($check:ident: $($flaw:ident)+ $(, and $other:ident)?;)+) => {
        /// A broken promise of a table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Flaw {
            $($($flaw,)+)+
        }

        /// Each flaw, and a check that it must fail.
        pub(crate) const FLAWS: &[(Flaw, &str)] = &[
            $($((Flaw::$flaw, stringify!($check)),)+ $((Flaw::$other, stringify!($check)),)?)+
        ];
    };
}

flaws! {
    missing_entries_read_as_empty: MissingIsAnError AbsentReadsAsEmptyText;
    creates_makes_the_first_entries: CreatesNothing CreatesOverwrites;
    values_come_back_byte_for_byte:
        SpacesTrimmed CutAt255Bytes LowerCased NonAsciiLost JsonNormalised BackslashesHalved
        LastBlockLost;
    a_put_replaces_the_value: FirstValueStays OutcomeUnknown;
    a_commit_shows_on_every_connection: ReadsAreCached;
    values_are_compared_byte_by_byte:
        CaseIgnored TrailingSpacesIgnored AccentsComposed JsonCompared PatternsCompared;
    a_commit_needs_every_compared_value:
        UnwrittenNotCompared WrittenNotCompared AbsenceNotCompared AbsentMatchesAny EmptyIsAbsent
        FirstCompared LastCompared ConflictWritesFirst ConflictWritesAll;
    a_conflict_shows_what_instead_reads:
        ConflictIsEmpty ConflictShowsCompared ConflictLacksBlocks ConflictLacksTime;
    a_commit_is_bounded_in_time:
        NotBeforeIgnored NotAfterIgnored NotBeforeRejected NotAfterRejected;
    a_commit_is_bound_to_an_incarnation:
        IncarnationIgnored IncarnationByPrefix IncarnationRequired;
    a_commit_spans_namespaces: OneNamespaceWritten OneNamespaceRead;
    a_commit_has_up_to_127_keys: HundredCompared HundredWritten;
    a_query_has_up_to_250_keys: HundredRead;
    the_lowest_ranks_are_found:
        LowestByKey LowestByDigits LimitIgnored LimitOffByOne WindowIgnored WindowOfTheLowest
        WindowEndIncluded;
    a_rank_changes_with_its_entry: FirstRankStays;
    complete_tells_whether_blocks_are_left_out:
        CompleteAlways CompleteNever CompleteBelowLimit CompleteByEntries;
    thousands_of_blocks_are_read: TwoThousandRead, and LastBlockLost;
    similar_names_are_kept_apart: NamesArePatterns NamesArePrefixes;
    keys_may_repeat_and_overlap_blocks: RepeatedIsAnError RepeatedIsLost OverlapIsLost;
    a_read_shows_one_moment: ReadsAreTorn PagesAreTorn ReadsLag;
    no_update_is_lost: CheckedThenWritten;
    compared_keys_are_protected_from_writes: WritesMaySkew;
    absent_keys_are_protected_from_inserts: InsertsMaySkew;
    the_clock_moves_on: TimeInSeconds TimeStandsStill TimeIsMissing TimeIsOutOfRange;
    the_incarnation_is_stable: IncarnationByRead IncarnationByConnection IncarnationByCommit;
    the_server_is_described: NoName DescriptionFails;
}
