//! Many walks side by side, in vectors.
//!
//! What `many` does to lists of numbers is done here to lists of words, four streams for the
//! four words of a block, as the cipher has them in its registers. So only the beginning and
//! the end turn blocks into words and back, and a list is compressed from the registers in
//! which it was encrypted. The blocks of the first list stay where they are, a vector of each
//! word after the other.
//!
//! * A list is as long as it is, and vectors are longer: what lies behind its end, in the lists'
//!   memory, is encrypted and otherwise ignored.
//! * What is left over when the vectors in flight are full, goes over to the next list as it
//!   is. It lies outside, and so it is what that list gives back.
//! * A list no longer than a vector, and one for whose followers there is no room, is walked to
//!   the ends in registers, vector by vector: the lanes of walks that have ended keep what they
//!   have. That needs no room and ends as each walk does, so no luck is needed to be right.

use std::array;

use super::super::kernel::{Aligned, Kernel, last_key};
use super::super::schedule::Schedule;
use super::super::task::Task;
use super::super::vector_ops::Words;
use super::lists::Lists;

/// What fills up a vector: it lies outside, so that no walk begins from it.
const OUTSIDE: u64 = 1 << super::BITS;

/// The most lists of a piece: more than it takes to halve the longest one away. In tests so few
/// that lists are cut off.
const LEVELS: usize = if cfg!(test) { 4 } else { 16 };

/// What the walks of a piece need, apart from its numbers.
struct Walks<'a, Ops> {
    ops: &'a Ops,
    schedule: &'a Schedule,
    words: [&'a mut [u16]; 4],
}

/// A list of blocks whose walks go on. It begins at a multiple of the lanes of a vector.
#[derive(Clone, Copy, Default)]
struct List {
    start: usize,
    len: usize,
}

impl List {
    fn end(self) -> usize {
        self.start + self.len
    }

    /// An empty list behind this one.
    fn next<const LANES: usize>(self) -> Self {
        Self {
            start: self.start + self.len.next_multiple_of(LANES),
            len: 0,
        }
    }
}

/// Where the vectors of a list begin, and a bit for each of their lanes that it fills.
fn vectors<const LANES: usize>(start: usize, end: usize) -> impl Iterator<Item = (usize, u32)> {
    let starts = (start..end).step_by(LANES);
    starts.map(move |start| (start, first_lanes(LANES.min(end - start))))
}

/// The bits of the first `count` lanes, 1 to 32.
fn first_lanes(count: usize) -> u32 {
    u32::MAX >> (32 - count)
}

/// Does `task` to `blocks`, and again to each that lies outside then; not at all to those that
/// lie outside before, unless it is a run.
#[inline(always)]
pub(in crate::cipher) fn walk_in_vectors<const LANES: usize>(
    ops: &impl Kernel<LANES>,
    schedule: &Schedule,
    mut task: Task,
    blocks: &mut [u64],
    lists: Lists<'_>,
) {
    let piece = lists.piece::<LANES>();
    let [a, b, c, d] = lists.words;
    // Known to be equally long, so that one comparison does for the bounds of all.
    let room = a.len();
    let mut walks = Walks {
        ops,
        schedule,
        words: [a, &mut b[..room], &mut c[..room], &mut d[..room]],
    };
    for piece in blocks.chunks_mut(piece) {
        walks.walk_piece(&mut task, piece, lists.masks);
    }
}

impl<Ops> Walks<'_, Ops> {
    #[inline(always)]
    fn walk_piece<const LANES: usize>(
        &mut self,
        task: &mut Task,
        piece: &mut [u64],
        masks: &mut [u32],
    ) where
        Ops: Kernel<LANES>,
    {
        let (vectors, tail) = piece.as_chunks_mut::<LANES>();
        let masks = &mut masks[..vectors.len()];
        let mut last = Aligned([OUTSIDE; LANES]);
        let mut last_mask = 0;

        let mut list = self.begin(task, vectors, masks);
        if !tail.is_empty() {
            last.0[..tail.len()].copy_from_slice(tail);
            if matches!(task, Task::EncryptRun(_)) {
                last.0[..tail.len()].fill(0);
            }
            last_mask = self.begin_group(task, array::from_mut(&mut last.0), true, &mut list)[0];
        }
        self.end_list(task, list);

        let mut from = 0;
        for (vector, &mask) in vectors.iter_mut().zip(&*masks) {
            self.end(vector, mask, &mut from);
        }
        if !tail.is_empty() {
            self.end(&mut last.0, last_mask, &mut from);
            tail.copy_from_slice(&last.0[..tail.len()]);
        }
    }

    /// Does `task` once. Leaves words in the vectors, and returns the list of those that go on.
    #[inline(always)]
    fn begin<const LANES: usize>(
        &mut self,
        task: &mut Task,
        vectors: &mut [[u64; LANES]],
        masks: &mut [u32],
    ) -> List
    where
        Ops: Kernel<LANES>,
    {
        let are_given = !matches!(task, Task::EncryptRun(_));
        let mut list = List::default();
        let (fours, rest) = vectors.as_chunks_mut::<4>();
        let (twos, ones) = rest.as_chunks_mut::<2>();
        let (fours_masks, rest) = masks.as_chunks_mut::<4>();
        let (twos_masks, ones_masks) = rest.as_chunks_mut::<2>();
        for (group, masks) in fours.iter_mut().zip(fours_masks) {
            *masks = self.begin_group(task, group, are_given, &mut list);
        }
        for (group, masks) in twos.iter_mut().zip(twos_masks) {
            *masks = self.begin_group(task, group, are_given, &mut list);
        }
        for (vector, mask) in ones.iter_mut().zip(ones_masks) {
            let group = array::from_mut(vector);
            [*mask] = self.begin_group(task, group, are_given, &mut list);
        }
        list
    }

    #[inline(always)]
    fn begin_group<const LANES: usize, const GROUP: usize>(
        &mut self,
        task: &mut Task,
        group: &mut [[u64; LANES]; GROUP],
        are_given: bool,
        list: &mut List,
    ) -> [u32; GROUP]
    where
        Ops: Kernel<LANES>,
    {
        let branches = self.ops.begin(self.schedule, task, group);
        let key = last_key(self.schedule, task);
        let mut masks = [0; GROUP];
        for index in 0..GROUP {
            let mut words = self.ops.join(key, &branches, index);
            let mut mask = self.ops.outside(words[3]);
            if are_given {
                let given = self.ops.deinterleave(group[index]);
                let stay = self.ops.outside(given[3]);
                if stay != 0 {
                    for (word, given) in words.iter_mut().zip(given) {
                        *word = self.ops.select(stay, given, *word);
                    }
                    mask &= !stay;
                }
            }
            group[index] = self.ops.pack(words);
            self.append(words, mask, list);
            masks[index] = mask;
        }
        masks
    }

    /// The vector that begins at `start`.
    #[inline(always)]
    fn load<const LANES: usize>(&self, start: usize) -> Words<Ops::V>
    where
        Ops: Kernel<LANES>,
    {
        let mut words = [self.ops.splat(0); 4];
        for (word, stream) in words.iter_mut().zip(&self.words) {
            *word = self.ops.load(at(stream, start));
        }
        words
    }

    #[inline(always)]
    fn store<const LANES: usize>(&mut self, words: Words<Ops::V>, start: usize)
    where
        Ops: Kernel<LANES>,
    {
        for (&word, stream) in words.iter().zip(&mut self.words) {
            *at_mut(stream, start) = self.ops.store(word);
        }
    }

    /// Adds the lanes of `mask` to the list.
    #[inline(always)]
    fn append<const LANES: usize>(&mut self, words: Words<Ops::V>, mask: u32, list: &mut List)
    where
        Ops: Kernel<LANES>,
    {
        for (&word, stream) in words.iter().zip(&mut self.words) {
            self.ops.compress(word, mask, at_mut(stream, list.end()));
        }
        list.len += mask.count_ones() as usize;
    }

    /// Replaces the lanes of `mask` by the next from the list that is read at `from`.
    #[inline(always)]
    fn replace<const LANES: usize>(&self, words: &mut Words<Ops::V>, mask: u32, from: &mut usize)
    where
        Ops: Kernel<LANES>,
    {
        for (word, stream) in words.iter_mut().zip(&self.words) {
            *word = self.ops.expand(*word, mask, at(stream, *from));
        }
        *from += mask.count_ones() as usize;
    }

    /// Makes blocks of words that [`begin`](Self::begin) has left, with the ends of the walks
    /// that went on.
    #[inline(always)]
    fn end<const LANES: usize>(&self, vector: &mut [u64; LANES], mask: u32, from: &mut usize)
    where
        Ops: Kernel<LANES>,
    {
        let mut words = self.ops.unpack(*vector);
        self.replace(&mut words, mask, from);
        *vector = self.ops.interleave(words);
    }

    /// Walks on from all that is in `list`, to the ends.
    #[inline(always)]
    fn end_list<const LANES: usize>(&mut self, task: &Task, mut list: List)
    where
        Ops: Kernel<LANES>,
    {
        let room = self.words[0].len();
        let mut lists = [List::default(); LEVELS];
        let mut level = 0;
        while level < LEVELS
            && list.len > LANES
            && list.next::<LANES>().start + list.len + LANES <= room
        {
            lists[level] = list;
            list = self.go_on(task, list);
            level += 1;
        }
        self.end_in_registers(task, list);
        for &list in lists[..level].iter().rev() {
            let mut from = list.next::<LANES>().start;
            for (start, lanes) in vectors::<LANES>(list.start, list.end()) {
                let mut words = self.load(start);
                let mask = self.ops.outside(words[3]) & lanes;
                self.replace(&mut words, mask, &mut from);
                self.store(words, start);
            }
        }
    }

    /// Does `task` once to a list. Returns the list of those that go on.
    #[inline(always)]
    fn go_on<const LANES: usize>(&mut self, task: &Task, list: List) -> List
    where
        Ops: Kernel<LANES>,
    {
        let mut next = list.next::<LANES>();
        let mut start = list.start;
        while start + 3 * LANES < list.end() {
            self.go_on_group::<LANES, 4>(task, start, list.end(), &mut next);
            start += 4 * LANES;
        }
        if start > list.start {
            // Too few for the vectors in flight wait until they have company.
            for (start, lanes) in vectors::<LANES>(start, list.end()) {
                self.append(self.load(start), lanes, &mut next);
            }
            return next;
        }
        while start + LANES < list.end() {
            self.go_on_group::<LANES, 2>(task, start, list.end(), &mut next);
            start += 2 * LANES;
        }
        if start < list.end() {
            self.go_on_group::<LANES, 1>(task, start, list.end(), &mut next);
        }
        next
    }

    #[inline(always)]
    fn go_on_group<const LANES: usize, const GROUP: usize>(
        &mut self,
        task: &Task,
        start: usize,
        end: usize,
        next: &mut List,
    ) where
        Ops: Kernel<LANES>,
    {
        let mut words = [[self.ops.splat(0); 4]; GROUP];
        for (index, words) in words.iter_mut().enumerate() {
            *words = self.load(start + index * LANES);
        }
        let branches = self.ops.go_on(self.schedule, task, &words);
        let key = last_key(self.schedule, task);
        for index in 0..GROUP {
            let start = start + index * LANES;
            let words = self.ops.join(key, &branches, index);
            let mask = self.ops.outside(words[3]) & first_lanes(LANES.min(end - start));
            self.store(words, start);
            self.append(words, mask, next);
        }
    }

    /// Walks on from all that is in `list`, to the ends, vector by vector.
    #[inline(always)]
    fn end_in_registers<const LANES: usize>(&mut self, task: &Task, list: List)
    where
        Ops: Kernel<LANES>,
    {
        let key = last_key(self.schedule, task);
        for (start, lanes) in vectors::<LANES>(list.start, list.end()) {
            let mut words = self.load(start);
            let mut mask = lanes;
            while mask != 0 {
                let branches = self.ops.go_on(self.schedule, task, &[words]);
                let next = self.ops.join(key, &branches, 0);
                for (word, next) in words.iter_mut().zip(next) {
                    *word = self.ops.select(mask, next, *word);
                }
                mask &= self.ops.outside(words[3]);
            }
            self.store(words, start);
        }
    }
}

/// The words of a vector in a stream.
#[inline(always)]
fn at<const LANES: usize>(stream: &[u16], start: usize) -> &[u16; LANES] {
    match stream[start..].first_chunk() {
        Some(words) => words,
        None => unreachable!("a list has room for a vector behind it"),
    }
}

#[inline(always)]
fn at_mut<const LANES: usize>(stream: &mut [u16], start: usize) -> &mut [u16; LANES] {
    match stream[start..].first_chunk_mut() {
        Some(words) => words,
        None => unreachable!("a list has room for a vector behind it"),
    }
}

#[cfg(test)]
mod tests;
