#!/usr/bin/env python3
"""Weakens the production code, one place at a time, and checks that a model notices.

Each weakening below names the file, the text, what it is replaced by, and the
models that must fail. The edit is made in a temporary copy; nothing here is
touched.

    python3 weaken.py            run them all; exit status 1 if one is not caught
    python3 weaken.py --sample   run one of each suite, another one each day
    python3 weaken.py NAME ...   run some
"""

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# Of a processor's time: a machine that has much else to do takes longer.
LIMIT_SECONDS = 300
# Models run on one core each, and so do copies of the project.
COPIES = os.cpu_count() or 1


class Weakening(NamedTuple):
    name: str
    invariant: str
    what: str
    file: str
    old: str
    new: str
    # Each of them must fail: `SUITE::NAME`.
    models: list


RING = "src/ring.rs"
CURSOR = "src/timeline/cursor.rs"
LINE = "src/timeline/line.rs"
PRODUCERS = "src/fill/producers.rs"
HANDLE = "src/generator/handle.rs"
CACHED = "src/generator/cached.rs"
PERMIT = "src/ring/permit.rs"
PUBLISH = "src/ring/publish.rs"
LANE = "src/timeline/lane.rs"
BACKING = "src/generator/backing.rs"
TIMELINE = "src/timeline.rs"
FILLER = "src/fill/filler.rs"
SERVE = "src/fill/filler/serve.rs"
TAKE = "src/fill/filler/take.rs"
PER_CORE = "src/per_core.rs"
STOCKS_MODEL = "src/per_core/stocks/model.rs"
ASSIST = "src/fill/filler/assist.rs"
IN_PLACE = "src/fill/filler/in_place.rs"
INSERT = "src/fill/filler/insert.rs"
READY = "src/fill/filler/ready.rs"
RECALL = "src/fill/recall.rs"
REQUESTS = "src/fill/requests.rs"
WAITERS = "src/fill/waiters.rs"
WAITING = "src/fill/waiters/waiting.rs"
WAKERS = "src/wakers.rs"

TAKE_EXCHANGE = """.compare_exchange(cursor, cursor + 1, AcqRel, Relaxed);"""

COPY_THEN_PUBLISH = """\
        // Relaxed: published by the Release below.
        for (slot, id) in first.iter().zip(ids_first) {
            slot.store(id.to_u64(), Relaxed);
        }
        for (slot, id) in second.iter().zip(ids_second) {
            slot.store(id.to_u64(), Relaxed);
        }
        self.publish(start, start + count);
"""
PUBLISH_THEN_COPY = """\
        self.publish(start, start + count);
        // Relaxed: published by the Release below.
        for (slot, id) in first.iter().zip(ids_first) {
            slot.store(id.to_u64(), Relaxed);
        }
        for (slot, id) in second.iter().zip(ids_second) {
            slot.store(id.to_u64(), Relaxed);
        }
"""

IDLE_THEN_LOOK = """\
        self.idle.fetch_or(bit, Release);
        // Read by adding nothing: a request that was raised before is seen
        // here, and a thread that raises one after this sees the idle bit.
        if self.wanted.fetch_or(0, AcqRel) & Wanted::BITS == 0 {
"""
LOOK_THEN_IDLE = """\
        let quiet = self.wanted.fetch_or(0, AcqRel) & Wanted::BITS == 0;
        self.idle.fetch_or(bit, Release);
        if quiet {
"""

LOOK_AFTER_SETTLING = """\
        stripe.request.close();
        unserved.keep();
        stripe.assist.free();

        // R4: first the request is closed, then the level is looked at.
        let level = stripe.ring.settled_level();
"""
LOOK_BEFORE_SETTLING = """\
        let level = stripe.ring.settled_level();
        stripe.request.close();
        unserved.keep();
        stripe.assist.free();
"""

SETTLE_THEN_LOOK = """\
        self.requests.settle(wanted);
        unserved.keep();
        // R4: first the bit is cleared, then the stripes' requests are looked at.
        if self.stripes.iter().any(|stripe| stripe.request.is_open()) {
            self.requests.request(FillCause::Threshold);
        }
"""
LOOK_THEN_SETTLE = """\
        let any = self.stripes.iter().any(|stripe| stripe.request.is_open());
        self.requests.settle(wanted);
        unserved.keep();
        if any {
            self.requests.request(FillCause::Threshold);
        }
"""

CLAIM_BY_EXCHANGE = """\
            Err(word) => Err(word.checked_sub(1)),
"""
CLAIM_BY_STORE = """\
            Err(_) => {
                self.0.store(end + 1, Relaxed);
                Ok(())
            }
"""

EXCHANGE_THEN_LOOK = """\
            match cursor.advance(next, end) {
                Ok(()) if self.still(&view) => {
"""
LOOK_THEN_EXCHANGE = """\
            let still = self.still(&view);
            match cursor.advance(next, end) {
                Ok(()) if still => {
"""

MARK_AS_OPEN = """\
        // Release: pairs with the Acquire in `view`.
        self.generation.store(generation + 1, Release);
"""
RECTANGLE_AND_CURSOR = """\
        // Release, here and below: a claim that reads one of these values acquires
        // the closed generation that came before it.
        self.first_node.store(nodes.start, Release);
        self.nodes.store(nodes.end - nodes.start, Release);
        self.first_tick.store(ticks.start, Release);
        self.end_tick.store(ticks.end, Release);
        cursor.reset();
"""
RECTANGLE_THEN_MARK = RECTANGLE_AND_CURSOR + MARK_AS_OPEN
MARK_THEN_RECTANGLE = MARK_AS_OPEN + RECTANGLE_AND_CURSOR

COUNT_AND_FENCE = """\
        let insertion = stripe.insertions.begin();
        // SeqCst: pairs with the fence in `recall`.
        fence(SeqCst);
"""
ASK_FOR_RECALLS = """\
        if !self.recalls.admits(mark) {
            return 0;
        }
"""
COUNT_THEN_ASK = COUNT_AND_FENCE + ASK_FOR_RECALLS
ASK_THEN_COUNT = ASK_FOR_RECALLS + COUNT_AND_FENCE

NOTE_THE_MARK = "            let mark = self.recalls.mark();\n"
MAKE_A_BLOCK = """\
            if alone && stripe.ring.has_room_below(limit) {
                alone = false;
                self.requests.wake_one();
            }
            let count;
            (count, outcome) = self.mint_block(&mut block[..permit.len()]);
"""
NOTE_THEN_MAKE = NOTE_THE_MARK + MAKE_A_BLOCK
MAKE_THEN_NOTE = MAKE_A_BLOCK + NOTE_THE_MARK

HANDLE_LOOKS = """\
        if stock.next < stock.filled
            && self
                .generator
                .filler
                .is_unrecalled(RecallMark::from_word(stock.mark))
        {
"""

RAISE_UNDER_THE_GATE = """\
        let mut gate = self.lock();
        // Relaxed: ordered by the gate, and by the next line.
        let for_the_last = self.for_the_last.swap(false, Relaxed);
        // Release: pairs with the fences in `wait` and `Waiting::poll`. A consumer that notes
        // this sequence sets the flag after it was cleared.
        self.sequence.fetch_add(1, Release);
"""
RAISE_OUTSIDE = """\
        let for_the_last = self.for_the_last.swap(false, Relaxed);
        self.sequence.fetch_add(1, Release);
        let mut gate = Wakers::default();
"""

LEVEL_CURSOR_FIRST = """\
        let cursor = self.counters.cursor.load(Acquire);
        let tail = self.counters.tail.load(Acquire);
        // While this thread slept
"""[:-1]
LEVEL_TAIL_FIRST = """\
        let tail = self.counters.tail.load(Acquire);
        let cursor = self.counters.cursor.load(Acquire);
        // While this thread slept
"""[:-1]

EXTEND = """\
        self.lanes[lane.0].extend(end_tick);
"""
REOPEN = """\
        let (at, view) = (lane.0, self.look(lane.0));
        let Some((view, _)) = view else { return };
        let (nodes, start) = (view.line.nodes(), view.line.ticks().start);
        self.lanes[at].close();
        self.lanes[at].open(self.cursor(at), &nodes, &(start..end_tick));
"""

NOTE_THEN_LOOK = """\
            // Relaxed: see "the note is not too new".
            let noted = self.sequence.load(Relaxed);
            // SeqCst: pairs with the fence in `notify`, and as an Acquire with `raise`.
            fence(SeqCst);
            if let Some(value) = attempt() {
                return Some(value);
            }
"""
LOOK_THEN_NOTE = """\
            fence(SeqCst);
            if let Some(value) = attempt() {
                return Some(value);
            }
            let noted = self.sequence.load(Relaxed);
"""

COMPARE_UNDER_THE_GATE = """\
        let mut gate = self.waiters.lock();
        // Relaxed: written under the gate.
        if self.waiters.sequence.load(Relaxed) == noted {
            Ok(gate.enter(&mut self.ticket, waker))
"""
COMPARE_OUTSIDE = """\
        if self.waiters.sequence.load(Relaxed) == noted {
            let mut gate = self.waiters.lock();
            Ok(gate.enter(&mut self.ticket, waker))
"""

LEAVE_THEN_LOOK = """\
        let mut own = None;
        if self.ticket.is_drawn() {
            own = self.waiters.lock().leave(&mut self.ticket);
        }
        // Relaxed: a consumer that is counted too long costs a producer a wake-up.
        self.waiters.count.fetch_sub(1, Relaxed);
        // After the waker was taken out: what wakes it no more wakes another.
        if self.supply.has_some() {
"""
LOOK_THEN_LEAVE = """\
        let mut own = None;
        let some = self.supply.has_some();
        if self.ticket.is_drawn() {
            own = self.waiters.lock().leave(&mut self.ticket);
        }
        self.waiters.count.fetch_sub(1, Relaxed);
        if some {
"""

ROOM_THEN_TAKE = """\
            let room = (!own.ring.is_held_back())
                .then(|| self.reserve(own, most_moved.min(half - 1)))
                .flatten();
            let more = room.as_ref().map_or(0, Reservation::len);
            let mut ids = [Id::default(); MOVED + 1];
            let (count, left) = other.ring.take_batch_leaving(&mut ids[..=more]);
"""
TAKE_THEN_ROOM = """\
            let mut ids = [Id::default(); MOVED + 1];
            let want = most_moved.min(half - 1);
            let (count, left) = other.ring.take_batch_leaving(&mut ids[..=want]);
            let room = self.reserve(own, want);
"""

OPEN_THEN_BIT = """\
        if stripe.0.swap(1, Relaxed) == 0 {
            // AcqRel: pairs with `sleep` and with `settle`.
            self.wanted.fetch_or(FillCause::Threshold.bit(), AcqRel);
            self.wake_one();
        }
"""
BIT_THEN_OPEN = """\
        self.wanted.fetch_or(FillCause::Threshold.bit(), AcqRel);
        if stripe.0.swap(1, Relaxed) == 0 {
            self.wake_one();
        }
"""

BATCH_ASKS_ELSEWHERE = """\
                if left < stripe.threshold && !self.note_low(stripe, left) {
                    return None;
                }
"""

MARK_THEN_BATCH = """\
        let mark = self.filler.recall_mark();
        let count = self.filler.take_batch(out);
        if count == out.len() {
"""
BATCH_THEN_MARK = """\
        let count = self.filler.take_batch(out);
        let mark = self.filler.recall_mark();
        if count == out.len() {
"""

LOOK_TWICE = """\
            refused => match self.take_last(out) {
                0 => Some(Err(refused)),
                last => Some(Ok(last)),
            },
"""

WEAKENINGS = [
    Weakening(
        "take-stores-cursor", "R1",
        "a take stores `cursor` instead of exchanging it",
        RING, "            Err(_) => Err(NotTaken::Contended),\n",
        "            Err(_) => {\n"
        "                self.counters.cursor.store(cursor + 1, crate::sync::atomic::Ordering::Release);\n"
        "                Ok((Id::from_u64(id), tail - cursor - 1))\n            }\n",
        ["ring::take_against_take_on_the_last_id"],
    ),
    Weakening(
        "take-reads-after", "R2",
        "a take reads the slot after moving `cursor`",
        RING, "            Ok(_) => Ok((Id::from_u64(id), tail - cursor - 1)),\n",
        "            Ok(_) => {\n"
        "                let id = { let _ = id; self.slot(cursor).load(Relaxed) };\n"
        "                Ok((Id::from_u64(id), tail - cursor - 1))\n            }\n",
        ["ring::take_against_fill_at_the_wrap"],
    ),
    Weakening(
        "take-tail-relaxed", "R1",
        "a take loads `tail` with Relaxed",
        RING, "let tail = self.counters.tail.load(Acquire);\n        debug_assert!(cursor <= tail || tail == WIPED, \"R2\");\n        if cursor == tail {",
        "let tail = self.counters.tail.load(Relaxed);\n        debug_assert!(cursor <= tail || tail == WIPED, \"R2\");\n        if cursor == tail {",
        ["ring::take_against_push"],
    ),
    Weakening(
        "take-cursor-relaxed", "R2",
        "a take loads `cursor` with Relaxed",
        RING, "let cursor = self.counters.cursor.load(Acquire);\n        // Acquire: pairs with the Release in `advance_tail`",
        "let cursor = self.counters.cursor.load(Relaxed);\n        // Acquire: pairs with the Release in `advance_tail`",
        ["ring::a_producer_and_two_consumers"],
    ),
    Weakening(
        "take-exchange-no-release", "R2",
        "a take's exchange does not release",
        RING, TAKE_EXCHANGE, TAKE_EXCHANGE.replace("AcqRel", "Acquire"),
        ["ring::a_producer_and_two_consumers"],
    ),
    Weakening(
        "take-exchange-no-acquire", "R4",
        "a take's exchange does not acquire",
        RING, TAKE_EXCHANGE, TAKE_EXCHANGE.replace("AcqRel", "crate::sync::atomic::Ordering::Release"),
        ["fill::a_crossing_is_enough"],
    ),
    Weakening(
        "fill-limit-too-far", "R2",
        "a producer may go one slot past `cursor + capacity`",
        PUBLISH, "self.counters.cursor.load(Acquire) + self.capacity() as u64",
        "self.counters.cursor.load(Acquire) + self.capacity() as u64 + 1",
        ["ring::take_against_fill_at_the_wrap"],
    ),
    Weakening(
        "promise-stored", "R2",
        "a permit is granted by a store instead of an exchange",
        PUBLISH, "Ok(_) => return Some(Permit::new(self, count as usize)),\n                Err(now) => promised = now,",
        "Ok(_) => return Some(Permit::new(self, count as usize)),\n                Err(_) => {\n"
        "                    self.counters.promised.store(promised + count, Relaxed);\n"
        "                    return Some(Permit::new(self, count as usize));\n                }",
        ["ring::producers_compete_for_room"],
    ),
    Weakening(
        "reserve-relaxed", "R2",
        "slots are reserved with Relaxed",
        PUBLISH, "self.counters.reserved.fetch_add(count, AcqRel)",
        "self.counters.reserved.fetch_add(count, Relaxed)",
        ["ring::room_passes_between_producers"],
    ),
    Weakening(
        "publish-before-copy", "R3",
        "the flags are flipped before the slots are written",
        PUBLISH, COPY_THEN_PUBLISH, PUBLISH_THEN_COPY,
        ["ring::two_producers_and_a_consumer"],
    ),
    Weakening(
        "publish-relaxed", "R3",
        "the flags are flipped with Relaxed",
        PUBLISH, "fetch_xor(bits, Release)", "fetch_xor(bits, Relaxed)",
        ["ring::two_producers_and_a_consumer"],
    ),
    Weakening(
        "flags-read-relaxed", "R3",
        "the flags are read with Relaxed",
        PUBLISH, "let flags = self.flags(position).load(Acquire);",
        "let flags = self.flags(position).load(Relaxed);",
        ["ring::two_producers_and_a_consumer"],
    ),
    Weakening(
        "tail-no-release", "R1",
        "`tail` is advanced without Release",
        PUBLISH, ".compare_exchange(tail, ready, AcqRel, Acquire)",
        ".compare_exchange(tail, ready, Acquire, Acquire)",
        ["ring::two_producers_and_a_consumer"],
    ),
    Weakening(
        "no-fence", "R3",
        "no fence between flipping the flags and reading the others'",
        PUBLISH, "        fence(SeqCst);\n        let mut tail", "        let mut tail",
        ["ring::two_producers_the_second_finishing_first"],
    ),
    Weakening(
        "no-help", "R3",
        "a producer that finds `tail` moved by another gives up",
        PUBLISH, "Err(now) => tail = now,\n            }\n        }\n    }\n\n    /// The first position",
        "Err(_) => return true,\n            }\n        }\n    }\n\n    /// The first position",
        ["ring::two_producers_the_second_finishing_first"],
    ),
    Weakening(
        "own-segment-only", "R3",
        "a producer advances `tail` over its own slots only",
        PUBLISH, "        self.publish(start, start + count);\n        self.advance_tail()\n",
        "        self.publish(start, start + count);\n"
        "        let _ = self.counters.tail.compare_exchange(start, start + count, AcqRel, Acquire);\n"
        "        true\n",
        ["ring::two_producers_the_second_finishing_first"],
    ),
    Weakening(
        "permit-kept", "R3",
        "a permit that is dropped is not given back",
        PERMIT, "        if self.count > 0 {\n", "        if false {\n",
        ["ring::a_producer_that_dies_half_way"],
    ),
    Weakening(
        "settle-after-look", "R4",
        "the producer looks at the level before it clears the request",
        SERVE, LOOK_AFTER_SETTLING, LOOK_BEFORE_SETTLING,
        ["fill::threshold_crossing_against_a_producer_about_to_sleep"],
    ),
    Weakening(
        "level-by-load", "R4",
        "the level is looked at with a plain load of `cursor`",
        RING, "self.counters.cursor.fetch_add(0, AcqRel)", "self.counters.cursor.load(Acquire)",
        ["fill::threshold_crossing_against_a_producer_about_to_sleep"],
    ),
    Weakening(
        "no-second-look", "R4",
        "the producer does not look at the level after it has filled",
        SERVE, "if level.filled < stripe.threshold && level.room > 0 {",
        "if false && level.filled < level.room {",
        [
            "fill::threshold_crossing_against_a_producer_about_to_sleep",
            "stripes::two_producers_serve_two_stripes",
        ],
    ),
    Weakening(
        "no-wake-up", "R4",
        "a request unparks nobody",
        REQUESTS, "            thread.unpark();\n        }\n    }\n", "            let _ = thread;\n        }\n    }\n",
        ["fill::threshold_crossing_against_a_producer_about_to_sleep"],
    ),
    Weakening(
        "unserved-forgotten", "R4",
        "a request is cleared when a producer takes it on, and a panic loses it",
        SERVE, "Undo(|| self.requests.reopen(wanted));", "Undo(|| self.requests.settle(wanted));",
        ["fill::a_producer_that_dies_half_way_leaves_its_request_open"],
    ),
    Weakening(
        "waiter-no-fence", "wait",
        "a waiting take does not fence between announcing itself and looking",
        WAITERS, "            fence(SeqCst);\n            if let Some", "            if let Some",
        ["fill::waiting_take_against_fill"],
    ),
    Weakening(
        "waiter-gate-open", "wait",
        "a producer notifies without passing the gate",
        WAITERS, RAISE_UNDER_THE_GATE, RAISE_OUTSIDE,
        ["fill::waiting_take_against_fill"],
    ),
    Weakening(
        "stop-without-unpark", "drop",
        "the producers are asked to stop and not woken",
        REQUESTS, ".for_each(Thread::unpark);", ".for_each(|_: &Thread| ());",
        ["fill::drop_against_fill"],
    ),
    Weakening(
        "claim-by-store", "U1",
        "a claim stores the position instead of exchanging it",
        CURSOR, CLAIM_BY_EXCHANGE, CLAIM_BY_STORE,
        [
            "timeline::claims_at_the_edge_of_a_run",
            "fill::in_place_against_fill",
            "stripes::takes_in_place_on_two_stripes",
            "stripes::an_assist_against_a_fill",
        ],
    ),
    Weakening(
        "limit-once", "U2",
        "the limit is checked before the loop only",
        LANE, "            if start >= limit {", "            if start >= limit && next == 0 {",
        ["timeline::claims_at_the_limit"],
    ),
    Weakening(
        "skip-by-store", "U1",
        "the skip to the clock is a store of its own",
        LANE, "        let mut next = cursor.next()?;\n        loop {",
        "        let mut next = cursor.next()?;\n"
        "        if floor > next { cursor.start_at(floor); next = floor; }\n        loop {",
        ["timeline::clock_skip_against_claim"],
    ),
    Weakening(
        "batch-stores-cursor", "R1",
        "a batch stores `cursor` instead of exchanging it",
        RING, "if exchange.is_ok() {\n                return (count, level - count as u64);",
        "if exchange.is_ok() || { self.counters.cursor.store(next, crate::sync::atomic::Ordering::Release); true } {\n"
        "                return (count, level - count as u64);",
        ["ring::take_against_batch"],
    ),
    Weakening(
        "take-exchanges-late", "R1",
        "a take moves `cursor` from wherever it is by then (Baidu's mistake)",
        RING, "        let id = self.slot(cursor).load(Relaxed);\n",
        "        let id = self.slot(cursor).load(Relaxed);\n"
        "        let cursor = self.counters.cursor.load(Acquire);\n",
        ["ring::two_takes_against_fill_at_the_wrap"],
    ),
    Weakening(
        "flags-stored", "R3",
        "flags are flipped by a load and a store",
        PUBLISH, "self.flags(position).fetch_xor(bits, Release);",
        "let flags = self.flags(position);\n            flags.store(flags.load(Relaxed) ^ bits, Release);",
        ["ring::two_producers_in_one_word_of_flags"],
    ),
    Weakening(
        "idle-after-look", "R4",
        "a producer looks at the requests before it marks itself idle",
        REQUESTS, IDLE_THEN_LOOK, LOOK_THEN_IDLE,
        ["fill::two_consumers_cross"],
    ),
    Weakening(
        "look-by-load", "R4",
        "a producer's last look before it sleeps is a plain load",
        REQUESTS, "self.wanted.fetch_or(0, AcqRel) & Wanted::BITS == 0", "self.wanted.load(Relaxed) & Wanted::BITS == 0",
        ["fill::two_producers_settle"],
    ),
    Weakening(
        "no-stop", "drop",
        "the producers are joined without being asked to stop",
        PRODUCERS, "        self.filler.requests().stop();\n", "",
        ["fill::drop_against_take"],
    ),
    Weakening(
        "handle-gives-back-all", "R1",
        "a handle also gives back the IDs that it has handed out",
        HANDLE, "stock.ids.get(stock.next..stock.filled)", "stock.ids.get(..stock.filled)",
        ["fill::handle_against_take"],
    ),
    Weakening(
        "insert-silent", "wait",
        "the IDs that a consumer puts into a stripe wake nobody",
        INSERT, "        if pushed > 0 {\n            self.notify_waiters();\n        }\n", "",
        ["fill::waiting_take_against_give_back", "stripes::a_waiting_take_against_a_move"],
    ),
    Weakening(
        "line-without-end", "U2",
        "the line is not cut at the end of the lease",
        LINE, "|position| position.min(self.len)", "|position| position",
        ["timeline::claims_at_the_end_of_the_lease"],
    ),
    Weakening(
        "lanes-overlap", "U1",
        "the lanes of a direct generator share a node",
        BACKING, "cut(self.index)..cut(self.index + 1)", "cut(0)..cut(self.index + 1)",
        ["timeline::clock_step_back_against_claim"],
    ),
    Weakening(
        "lane-unasked", "U2",
        "a claim does not look at its lane again",
        LANE, "Ok(()) if self.still(&view) => {", "Ok(()) if self.still(&view) || true => {",
        ["leases::claim_against_swap"],
    ),
    Weakening(
        "lane-asked-early", "U2",
        "a claim looks at its lane again before it moves the cursor",
        LANE, EXCHANGE_THEN_LOOK, LOOK_THEN_EXCHANGE,
        ["leases::two_claims_against_swap"],
    ),
    Weakening(
        "lane-closed-unseen", "S4",
        "a claim does not see that its lane is closed",
        LANE, "if generation & 1 == 1 {\n            return None;", "if false {\n            return None;",
        ["leases::close_against_claim"],
    ),
    Weakening(
        "lane-opened-early", "U2",
        "a lane is marked as open before its rectangle is written",
        LANE, RECTANGLE_THEN_MARK, MARK_THEN_RECTANGLE,
        ["leases::claim_against_swap"],
    ),
    Weakening(
        "lane-open-relaxed", "U2",
        "a lane is marked as open with Relaxed",
        LANE, "self.generation.store(generation + 1, Release)", "self.generation.store(generation + 1, Relaxed)",
        ["leases::claim_against_swap"],
    ),
    Weakening(
        "lane-mark-read-relaxed", "U2",
        "a claim reads with Relaxed that its lane is open",
        LANE, "let generation = self.generation.load(Acquire);", "let generation = self.generation.load(Relaxed);",
        ["leases::claim_against_swap"],
    ),
    Weakening(
        "rectangle-stored-relaxed", "U2",
        "a lane's rectangle is stored with Relaxed",
        LANE, "self.first_node.store(nodes.start, Release)", "self.first_node.store(nodes.start, Relaxed)",
        ["leases::claim_against_swap"],
    ),
    Weakening(
        "rectangle-read-relaxed", "U2",
        "a lane's rectangle is read with Relaxed",
        LANE, "let first_node = self.first_node.load(Acquire);", "let first_node = self.first_node.load(Relaxed);",
        ["leases::claim_against_swap"],
    ),
    Weakening(
        "lane-cursor-relaxed", "U1",
        "a lane's cursor is set back with Relaxed",
        CURSOR, ".fetch_update(AcqRel, Relaxed,", ".fetch_update(Relaxed, Relaxed,",
        ["leases::two_claims_against_swap"],
    ),
    Weakening(
        "claim-exchange-relaxed", "U1",
        "a claim's exchange does not acquire",
        CURSOR, ".compare_exchange_weak(next + 1, end + 1, AcqRel, Acquire)",
        ".compare_exchange_weak(next + 1, end + 1, crate::sync::atomic::Ordering::Release, Acquire)",
        ["leases::two_claims_against_swap"],
    ),
    Weakening(
        "recall-no-fence", "S4",
        "no fence between counting a recall and looking for threads that insert",
        INSERT, "        fence(SeqCst);\n        let more", "        let more",
        ["leases::invalidate_against_fill"],
    ),
    Weakening(
        "recall-once", "S4",
        "a recall does not look for threads that insert",
        INSERT, "let more = self.stripes.iter().any(|stripe| stripe.insertions.any());", "let more = false;",
        ["leases::invalidate_against_fill"],
    ),
    Weakening(
        "inserted-relaxed", "S4",
        "a thread that has inserted is counted no more before that can be seen",
        RECALL, "self.0.0.fetch_sub(1, Release);", "self.0.0.fetch_sub(1, Relaxed);",
        ["leases::invalidate_against_fill"],
    ),
    Weakening(
        "insert-no-fence", "S4",
        "no fence between being counted and asking whether all was recalled",
        INSERT, "        fence(SeqCst);\n        if !self.recalls.admits(mark) {", "        if !self.recalls.admits(mark) {",
        ["leases::invalidate_against_fill", "leases::invalidate_against_handle"],
    ),
    Weakening(
        "fill-marked-late", "S4",
        "a fill notes its mark when the IDs are made",
        SERVE, NOTE_THEN_MAKE, MAKE_THEN_NOTE,
        ["leases::invalidate_against_fill"],
    ),
    Weakening(
        "insert-unasked", "S4",
        "IDs that were recalled are inserted",
        INSERT, "if !self.recalls.admits(mark) {", "if false && !self.recalls.admits(mark) {",
        ["leases::invalidate_against_fill", "leases::invalidate_against_handle"],
    ),
    Weakening(
        "give-back-asked-early", "S4",
        "a handle asks whether all was recalled before it is counted",
        INSERT, COUNT_THEN_ASK, ASK_THEN_COUNT,
        ["leases::invalidate_against_handle"],
    ),
    Weakening(
        "inserting-read-relaxed", "S4",
        "a recall does not acquire the IDs that were inserted",
        RECALL, "self.0.load(Acquire) > 0", "self.0.load(Relaxed) > 0",
        ["leases::invalidate_against_fill"],
    ),
    Weakening(
        "handle-unasked", "S4",
        "a handle issues IDs that were recalled",
        HANDLE, HANDLE_LOOKS, "        if stock.next < stock.filled {\n",
        ["leases::invalidate_against_handle_take"],
    ),
    Weakening(
        "recall-counted-once", "S4",
        "a recall is counted when it begins, and not when it ends",
        INSERT, "        self.recalls.end();\n", "",
        ["leases::invalidate_against_restock"],
    ),
    Weakening(
        "give-back-amid-recall", "S4",
        "a handle gives back IDs that it took while a recall was under way",
        RECALL, "word == mark.0 && word.is_multiple_of(FINISHED)", "word == mark.0",
        ["leases::invalidate_against_restock_and_drop"],
    ),
    Weakening(
        "dry-take-silent", "R3",
        "a take that leaves nothing wakes nobody while a request is open",
        FILLER, "self.requests.insist_for(&stripe.request);", "self.requests.request_for(&stripe.request);",
        ["fill::a_dry_take_against_a_stuck_producer"],
    ),
    Weakening(
        "waiter-noted-late", "wait",
        "a waiting take notes the sequence after it has looked",
        WAITERS, NOTE_THEN_LOOK, LOOK_THEN_NOTE,
        ["fill::waiting_take_against_fill"],
    ),
    Weakening(
        "waiter-sequence-kept", "wait",
        "a producer wakes without raising the sequence",
        WAITERS, "        self.sequence.fetch_add(1, Release);\n", "",
        ["fill::waiting_take_against_fill"],
    ),
    Weakening(
        "waiter-last-alone", "wait",
        "one is woken, though some wait for the last",
        WAITERS, "        if all || for_the_last {", "        if all || for_the_last && false {",
        ["stripes::two_that_wait_for_the_last"],
    ),
    Weakening(
        "waiter-leaves-silently", "wait",
        "a consumer that has waited wakes nobody, though there is more",
        WAITERS, "        if (self.more)() {\n            self.waiters.notify();\n        }\n", "",
        ["fill::two_that_wait_against_one_publication"],
    ),
    Weakening(
        "future-no-fence", "wait",
        "a future does not fence between announcing itself and looking",
        WAITING, "            fence(SeqCst);\n", "",
        ["futures::a_future_against_a_publication"],
    ),
    Weakening(
        "future-noted-late", "wait",
        "a future notes the sequence after it has looked",
        WAITING, "match self.enter(noted, fresh) {",
        "match self.enter({ let _ = noted; self.waiters.sequence.load(Relaxed) }, fresh) {",
        ["futures::a_future_against_a_publication"],
    ),
    Weakening(
        "future-entered-unseen", "wait",
        "a future enters its waker without comparing the sequence",
        WAITING, "if self.waiters.sequence.load(Relaxed) == noted {",
        "if self.waiters.sequence.load(Relaxed) >= noted {",
        ["futures::a_future_against_a_publication"],
    ),
    Weakening(
        "future-compared-outside", "wait",
        "a future compares the sequence before it passes the gate",
        WAITING, COMPARE_UNDER_THE_GATE, COMPARE_OUTSIDE,
        ["futures::a_future_against_a_publication"],
    ),
    Weakening(
        "future-leaves-silently", "wait",
        "a future that leaves wakes nobody, though there is more",
        WAITING, "if self.supply.has_some() {", "if false && self.supply.has_some() {",
        [
            "futures::a_future_that_is_dropped_passes_the_wake_up_on",
            "stripes::a_wait_for_an_id_against_a_take",
            "futures::two_futures_against_one_publication",
        ],
    ),
    Weakening(
        "future-looks-early", "wait",
        "a future that leaves looks at the ring before it takes its waker out",
        WAITING, LEAVE_THEN_LOOK, LOOK_THEN_LEAVE,
        ["futures::a_future_that_is_dropped_passes_the_wake_up_on"],
    ),
    Weakening(
        "future-stays-listed", "wait",
        "a future that leaves does not take its waker out",
        WAITING, "if self.ticket.is_drawn() {", "if false && self.ticket.is_drawn() {",
        ["futures::a_future_that_is_ready_before_it_is_woken"],
    ),
    Weakening(
        "future-stays-counted", "wait",
        "a future that leaves stays counted",
        WAITING, "self.waiters.count.fetch_sub(1, Relaxed);", "",
        ["futures::a_future_against_a_publication"],
    ),
    Weakening(
        "future-keeps-its-first-waker", "wait",
        "a poll does not replace the waker of the one before",
        WAKERS, "self.list.insert(number, waker)", "{ self.list.entry(number).or_insert(waker); None }",
        ["futures::the_waker_of_the_last_poll_is_woken"],
    ),
    Weakening(
        "future-not-woken", "wait",
        "a publication wakes threads alone",
        WAITERS, "let future = gate.take_oldest();", "let future = None;",
        ["futures::a_future_and_a_thread_against_one_publication"],
    ),
    Weakening(
        "future-alone-at-the-end", "wait",
        "of the futures one is woken, though all may wait in vain",
        WAITERS, "let futures = gate.take_all();", "let futures = gate.take_oldest();",
        ["futures::all_are_woken_at_the_end"],
    ),
    Weakening(
        "batch-beyond-the-ring", "R1",
        "a batch is not cut at the capacity",
        RING, "level.min(want as u64).min(self.capacity() as u64) as usize",
        "level.min(want as u64) as usize",
        ["ring::batch_of_more_than_the_ring_against_rounds"],
    ),
    Weakening(
        "level-beyond-the-ring", "level",
        "the level is not cut at the capacity",
        RING, "(tail.saturating_sub(cursor) as usize).min(self.capacity())", "tail.saturating_sub(cursor) as usize",
        ["ring::level_against_rounds"],
    ),
    Weakening(
        "level-tail-first", "level",
        "the level is read from `tail` first",
        RING, LEVEL_CURSOR_FIRST, LEVEL_TAIL_FIRST,
        ["ring::level_of_a_ring_that_is_never_empty"],
    ),
    Weakening(
        "lane-open-reopened", "U2",
        "a grant is put on a lane that is open",
        TIMELINE, ".find(|&at| !self.lanes[at].is_open())?;", ".next()?;",
        ["leases::claim_against_swap_by_two_threads"],
    ),
    Weakening(
        "extension-reopens", "U1",
        "a renewal opens the lane again instead of moving its end",
        TIMELINE, EXTEND, REOPEN,
        ["leases::claims_against_extension"],
    ),
    Weakening(
        "no-other-lane", "U1",
        "a claim that finds its lane used up does not look at the others",
        TIMELINE, "None => self.claim_elsewhere(at, want, now),",
        "None => Err(self.refusal(now)),",
        ["leases::claims_move_on_to_the_other_lane"],
    ),
    Weakening(
        "recall-counts-early", "R1",
        "a recall counts the IDs that it finds instead of those that it drops",
        RING, "if retired == 0 || !dropped(retired) {", "if !dropped(step) || retired == 0 {",
        ["leases::invalidate_against_invalidate"],
    ),
    Weakening(
        "move-stores-late", "R1",
        "a take that moves IDs publishes one that it also gives out",
        TAKE, "let inserted = room.stock(moved, mark);", "let inserted = room.stock(&ids[..moved.len()], mark);",
        ["stripes::a_move_against_a_fill", "stripes::a_move_against_a_take"],
    ),
    Weakening(
        "move-without-room", "R1",
        "a take that moves IDs takes them before it has room",
        TAKE, ROOM_THEN_TAKE, TAKE_THEN_ROOM,
        ["stripes::a_move_against_a_fill"],
    ),
    Weakening(
        "move-marked-late", "S4",
        "a take that moves IDs notes its mark after it has taken them",
        TAKE, "let inserted = room.stock(moved, mark);",
        "let inserted = room.stock(moved, { let _ = mark; self.recalls.mark() });",
        ["stripes::a_recall_against_a_move"],
    ),
    Weakening(
        "room-unasked", "R4",
        "a consumer does not look at the level when it is done with its room",
        INSERT, "        self.filler.note_level(self.stripe, level.filled);\n", "        let _ = level;\n",
        ["stripes::a_move_that_comes_too_late"],
    ),
    Weakening(
        "room-late", "R4",
        "a consumer looks at the level before it gives its room back",
        INSERT, "        drop(self.permit.take());\n", "",
        ["stripes::a_move_that_comes_too_late"],
    ),
    Weakening(
        "refused-room-unasked", "R4",
        "a consumer whose run is refused does not look at the level",
        INSERT, "        if self.filler.source.timeline().is_forked() {", "        if self.permit.take().is_none() && self.stocked == 0 {",
        ["stripes::a_run_that_is_refused_against_a_fill"],
    ),
    Weakening(
        "room-by-load", "R4",
        "a consumer looks at the level with a plain load",
        INSERT, "        let level = self.stripe.ring.settled_level();\n        self.filler.note_level(self.stripe, level.filled);\n",
        "        self.filler.note_level(self.stripe, self.stripe.ring.len() as u64);\n",
        ["stripes::a_run_in_place_against_a_fill"],
    ),
    Weakening(
        "assist-marked-late", "S4",
        "an assist notes its mark when the IDs are made",
        ASSIST, "let inserted = room.stock(&run[..made], mark);",
        "let inserted = room.stock(&run[..made], { let _ = mark; self.recalls.mark() });",
        ["stripes::a_recall_against_an_assist"],
    ),
    Weakening(
        "in-place-marked-late", "S4",
        "a run in place notes its mark when the IDs are made",
        IN_PLACE, "let stocked = room.stock(for_stripe, mark);",
        "let stocked = room.stock(for_stripe, { let _ = mark; self.recalls.mark() });",
        ["stripes::a_recall_against_a_run_in_place"],
    ),
    Weakening(
        "run-stocked-whole", "U1",
        "a run in place puts the ID that it gives out into the stripe as well",
        IN_PLACE, "let stocked = room.stock(for_stripe, mark);",
        "let stocked = room.stock(&run[..for_stripe.len()], mark);",
        ["stripes::a_run_in_place_against_a_fill"],
    ),
    Weakening(
        "no-look-at-the-others", "R4",
        "a producer that is done does not look at all stripes' requests",
        SERVE, "        if self.stripes.iter().any(|stripe| stripe.request.is_open()) {",
        "        if false && self.stripes.iter().any(|stripe| stripe.request.is_open()) {",
        ["stripes::a_wake_up_for_the_stripe_that_nobody_fills"],
    ),
    Weakening(
        "look-at-the-others-first", "R4",
        "a producer looks at all stripes' requests before it clears the bit",
        SERVE, SETTLE_THEN_LOOK, LOOK_THEN_SETTLE,
        ["stripes::a_wake_up_for_the_stripe_that_nobody_fills"],
    ),
    Weakening(
        "settle-relaxed", "R4",
        "a producer clears the bit with Relaxed",
        REQUESTS, "self.wanted.fetch_and(!served.causes(), AcqRel);", "self.wanted.fetch_and(!served.causes(), Relaxed);",
        ["stripes::a_wake_up_for_the_stripe_that_nobody_fills"],
    ),
    Weakening(
        "open-relaxed", "R4",
        "a take that has opened its stripe's request sets the bit with Relaxed",
        REQUESTS, "self.wanted.fetch_or(FillCause::Threshold.bit(), AcqRel);",
        "self.wanted.fetch_or(FillCause::Threshold.bit(), Relaxed);",
        ["stripes::a_wake_up_for_the_stripe_that_nobody_fills"],
    ),
    Weakening(
        "bit-before-request", "R4",
        "a take sets the bit before it opens its stripe's request",
        REQUESTS, OPEN_THEN_BIT, BIT_THEN_OPEN,
        ["stripes::a_wake_up_for_the_stripe_that_nobody_fills"],
    ),
    Weakening(
        "refused-forgotten", "R4",
        "a stripe whose fill is refused has no request any more",
        SERVE, "                stripe.request.reopen();\n", "                stripe.request.close();\n",
        ["stripes::a_run_that_is_refused_against_a_fill"],
    ),
    Weakening(
        "one-stripe-of-two", "R1",
        "a take that finds its stripe empty does not look at the others",
        PER_CORE, "(0..count).map(move |step|", "(0..count.min(1)).map(move |step|",
        ["stripes::an_empty_stripe_is_not_an_empty_cache"],
    ),
    Weakening(
        "batch-elsewhere-uncounted", "R1",
        "a batch does not count the IDs that it takes from another stripe",
        TAKE, "                done += count;\n", "                let _ = count;\n",
        ["stripes::a_batch_against_a_move"],
    ),
    Weakening(
        "batch-elsewhere-unasked", "R4",
        "a batch does not ask for the other stripe that it takes from",
        TAKE, BATCH_ASKS_ELSEWHERE, "                let _ = left;\n",
        ["stripes::a_batch_against_a_move"],
    ),
    Weakening(
        "batch-marked-late", "S4",
        "a batch notes its mark after it has taken its IDs",
        CACHED, MARK_THEN_BATCH, BATCH_THEN_MARK,
        ["leases::invalidate_against_a_batch_that_panics"],
    ),
    Weakening(
        "last-not-waited-for", "wait",
        "a consumer gives up at the end of the lease, though others hold IDs",
        FILLER, "                    && self.waits_for_the_last() =>", "                    && false && self.waits_for_the_last() =>",
        ["stripes::a_waiting_take_against_the_last_fill"],
    ),
    Weakening(
        "last-looked-for-once", "wait",
        "a consumer gives up at the end of the lease without a second look",
        FILLER, LOOK_TWICE, "            refused => Some(Err(refused)),\n",
        ["stripes::a_waiting_take_against_the_last_fill"],
    ),
    Weakening(
        "claim-no-release", "wait",
        "a claim's exchange does not release the room that was reserved before it",
        CURSOR, ".compare_exchange_weak(next + 1, end + 1, AcqRel, Acquire)",
        ".compare_exchange_weak(next + 1, end + 1, Acquire, Acquire)",
        ["stripes::a_waiting_take_against_the_last_fill"],
    ),
    Weakening(
        "ready-keeps-its-place", "wait",
        "a task that waits for a lease keeps its place among those who wait for IDs",
        READY, "            self.waiting = self.filler.waiting();\n", "",
        ["stripes::a_wait_for_a_lease_against_a_publication"],
    ),
    Weakening(
        "assist-not-freed", "R4",
        "a producer that has served a stripe does not free the permission to assist it",
        SERVE, "        stripe.assist.free();\n", "",
        ["stripes::a_refused_assist_against_a_fill"],
    ),
    Weakening(
        "two-stripes-unasked", "R4",
        "a take that opens its stripe's request wakes nobody",
        REQUESTS, "            self.wanted.fetch_or(FillCause::Threshold.bit(), AcqRel);\n            self.wake_one();\n",
        "            self.wanted.fetch_or(FillCause::Threshold.bit(), AcqRel);\n",
        ["stripes::two_stripes_cross"],
    ),
    Weakening(
        "thread-not-woken", "wait",
        "a publication wakes futures alone",
        WAITERS, "            drop(gate);\n            self.condvar.notify_one();\n", "            drop(gate);\n",
        ["futures::a_future_that_is_dropped_and_a_thread"],
    ),
    Weakening(
        "section-not-exclusive", "R1",
        "threads of one core are in a section at the same time",
        STOCKS_MODEL, "    let done = transition(stock);\n    drop(section);\n",
        "    drop(section);\n    let done = transition(stock);\n",
        ["stocks::two_takes_of_one_core"],
    ),
    Weakening(
        "stock-given-out-twice", "R1",
        "a restock puts the ID that it gives out into the stock as well",
        TAKE, "self.restock(stocks, stripe, others, mark);",
        "self.restock(stocks, stripe, &ids[..others.len()], mark);",
        ["stocks::two_takes_of_one_core"],
    ),
    Weakening(
        "full-stock-filled", "R1",
        "a stock is filled that has some",
        STOCKS_MODEL, "if before == 0 || before & LEVEL != 0 {", "if before == 0 {",
        ["stocks::two_takes_of_one_core"],
    ),
    Weakening(
        "moved-restock-drops", "R1",
        "a restock that finds no room drops what it has",
        TAKE, "let back = self.put_back(ids, mark);", "let back = if true { 0 } else { self.put_back(ids, mark) };",
        ["stocks::a_restock_that_is_moved"],
    ),
    Weakening(
        "stale-stock-popped", "S4",
        "a take pops as if nothing had been recalled",
        TAKE, "Some(stocks) => stocks.pop(self.recalls.current().to_word()),", "Some(stocks) => stocks.pop(1 << 24),",
        ["stocks::a_recall_against_a_pop"],
    ),
    Weakening(
        "restock-marked-late", "S4",
        "a restock notes its mark after it has taken its IDs",
        TAKE, "self.restock(stocks, stripe, others, mark);",
        "self.restock(stocks, stripe, others, { let _ = mark; self.recalls.mark() });",
        ["stocks::a_recall_against_a_restock"],
    ),
    Weakening(
        "stale-stock-uncounted", "R1",
        "IDs that are discarded from a stock are not counted",
        TAKE, "stripe.count_retired(stocks.discard_stale(mark.to_word()));",
        "stocks.discard_stale(mark.to_word());",
        ["stocks::two_restocks_after_a_recall"],
    ),
    Weakening(
        "restock-unasked", "R4",
        "a restock does not look at the threshold",
        TAKE, "            return self.note_taken(stripe, id, left).filter(|_| is_ours);\n",
        "            let _ = &stripe;\n",
        ["stocks::a_restock_against_a_fill"],
    ),
    Weakening(
        "seizure-not-exclusive", "R1",
        "a stock is seized while a thread of its core is in a section",
        STOCKS_MODEL, "    let section = stock.section.lock().expect(\"no section panics\");\n    let word",
        "    let section = ();\n    let word",
        ["stocks::a_seizure_against_takes"],
    ),
    Weakening(
        "two-seize", "R1",
        "a stock that another thread is seizing counts as one that has IDs",
        STOCKS_MODEL, "let has_some = !matches!(word & LEVEL, 0 | SEIZED);",
        "let has_some = word & LEVEL != 0;",
        ["stocks::two_seizures"],
    ),
    Weakening(
        "stock-filled-silently", "wait",
        "a restock wakes nobody",
        TAKE, "        self.notify_waiters();\n", "",
        ["stocks::a_waiting_take_against_a_restock"],
    ),
    Weakening(
        "stale-stock-seized", "S4",
        "a consumer that seizes a stock does not look whether it was recalled",
        TAKE, "            if !self.recalls.is_unchanged_since(mark) {", "            if false {",
        ["stocks::a_recall_against_a_seizure"],
    ),
]
# Each is run alone.
PAIRS = [(weakening, model) for weakening in WEAKENINGS for model in weakening.models]


def copy_of_the_project(to):
    shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns("target", ".git", "node_modules"))


def cargo_test(project, *arguments):
    # RUSTFLAGS would replace the `--cfg loom` of the package, and copies that share a target
    # directory would wait for each other.
    environment = {k: v for k, v in os.environ.items() if k not in ("CARGO_TARGET_DIR", "RUSTFLAGS")}
    environment["RUST_BACKTRACE"] = "0"
    # A weakening changes one function: all else is built once.
    environment["CARGO_INCREMENTAL"] = "1"
    limited = ["bash", "-c", f'ulimit -S -t {LIMIT_SECONDS} && exec "$@"', "bash"]
    return subprocess.run(
        [*limited, "cargo", "test", "--release", *arguments], cwd=project / "loom-tests",
        capture_output=True, text=True, timeout=10 * LIMIT_SECONDS, env=environment,
    )


def run_model(project, model):
    """An error, or None where the model fails."""
    suite, name = model.split("::")
    try:
        run = cargo_test(project, "--test", suite, name)
    except subprocess.TimeoutExpired:
        return "no end in sight"
    if f"signal: {signal.SIGXCPU:d}" in run.stderr:
        return "no end in sight"
    if "could not compile" in run.stderr:
        return "does not compile:\n" + run.stderr
    if run.returncode == 0:
        return "not caught"
    # A deadlock that loom reports can end in a second panic, and an abort.
    deadlock = "deadlock; threads" in run.stdout + run.stderr
    if f"{name} ... FAILED" not in run.stdout and not deadlock:
        return "failed in another way:\n" + run.stdout + run.stderr
    return None


def weaken(project, weakening, model):
    """What is wrong with the weakening or the model, or None where it is caught."""
    path = project / weakening.file
    text = path.read_text()
    if text.count(weakening.old) != 1:
        return f"the text to weaken stands {text.count(weakening.old)} times"
    path.write_text(text.replace(weakening.old, weakening.new))
    try:
        return run_model(project, model)
    finally:
        path.write_text(text)


def weaken_all(chosen, directory):
    """How many were not caught. Each copy of the project has one weakening at a time."""
    free = queue.SimpleQueue()
    for number in range(min(COPIES, len(chosen))):
        copy_of_the_project(directory / str(number))
        free.put(directory / str(number))

    def one(pair):
        weakening, model = pair
        project = free.get()
        try:
            problem = weaken(project, weakening, model)
        finally:
            free.put(project)
        result = problem or f"caught by {model}"
        print(f"{weakening.name} ({weakening.invariant}): {weakening.what}: {result}", flush=True)
        return problem is not None

    with ThreadPoolExecutor(COPIES) as pool:
        return sum(pool.map(one, chosen))


def stale():
    """The weakenings whose text does not stand in its file exactly once."""
    texts = {w.file: (ROOT / w.file).read_text() for w in WEAKENINGS}
    return [w.name for w in WEAKENINGS if texts[w.file].count(w.old) != 1]


def unmatched():
    """The models without a weakening, and those of weakenings that are not there."""
    named = {model for _, model in PAIRS}
    models = set()
    for suite in (ROOT / "loom-tests" / "tests").glob("*.rs"):
        names = re.findall(r"#\[test\]\nfn (\w+)", suite.read_text())
        models |= {f"{suite.stem}::{name}" for name in names}
    return sorted(models ^ named)


def sample():
    """One pair of each suite, chosen by date, so that each gets its turn."""
    day = int(time.time() / 86_400)
    suites = {}
    for weakening, model in PAIRS:
        suites.setdefault(model.split("::")[0], []).append((weakening, model))
    return [of_suite[day % len(of_suite)] for of_suite in suites.values()]


def main(arguments):
    if set(arguments) & {"-h", "--help"}:
        print(__doc__)
        return 0
    wanted = [a for a in arguments if not a.startswith("-")]
    unknown = set(wanted) - {w.name for w in WEAKENINGS}
    unknown |= {a for a in arguments if a.startswith("-")} - {"--sample"}
    if unknown:
        print("unknown weakening or option: " + ", ".join(sorted(unknown)), file=sys.stderr)
        return 2
    if texts := stale():
        print("the text that they replace is not there once: " + ", ".join(texts), file=sys.stderr)
        return 2
    if models := unmatched():
        print("models without a weakening, or gone: " + ", ".join(models), file=sys.stderr)
        return 2
    chosen = [pair for pair in PAIRS if not wanted or pair[0].name in wanted]
    if "--sample" in arguments:
        chosen = sample()
    with tempfile.TemporaryDirectory() as directory:
        problems = weaken_all(chosen, Path(directory))
    print(f"{len(chosen) - problems} passed, {problems} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
