//! The number from the area that a thread shares with the kernel, see `rseq(2)`.

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
))]
pub(in crate::per_core) use self::glibc::Areas;
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
)))]
pub(in crate::per_core) use self::none::Areas;

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
))]
mod glibc {
    use std::arch::asm;
    use std::ffi::CStr;
    use std::num::NonZeroIsize;
    use std::ptr::NonNull;

    /// Where each thread has its rseq area: so many bytes from its thread pointer.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::per_core) struct Areas {
        // Never 0, which is the thread pointer's own place.
        offset: NonZeroIsize,
    }

    impl Areas {
        /// Looks for them. There are none if the C library has registered none: before
        /// 2.35, on a kernel before 4.18, or because a tunable of glibc forbids it.
        pub(in crate::per_core) fn find() -> Option<Self> {
            let (size, offset) = (symbol(c"__rseq_size")?, symbol(c"__rseq_offset")?);
            // SAFETY: glibc documents an `unsigned int` of this name, which never changes
            // once a program runs.
            let is_registered = unsafe { size.cast::<u32>().read() } > 0;
            // SAFETY: the same for a `ptrdiff_t`.
            let offset = NonZeroIsize::new(unsafe { offset.cast::<isize>().read() })?;
            is_registered.then_some(Self { offset })
        }

        /// The offset from the thread pointer, in bytes.
        #[inline]
        pub(in crate::per_core) fn offset(self) -> isize {
            self.offset.get()
        }

        /// The field `cpu_id_start`, which is a possible number at any time.
        #[inline]
        pub(in crate::per_core) fn number(self) -> usize {
            self.field::<0>()
        }

        /// The field `cpu_id`: the number, or at least 2^31 for a thread without an area.
        pub(in crate::per_core) fn exact_number(self) -> usize {
            self.field::<4>()
        }

        /// The field of 4 bytes at this offset in the area.
        #[inline]
        fn field<const OFFSET: u32>(self) -> usize {
            let area = self.offset.get();
            let value: u32;
            // SAFETY: glibc allocates the area of each thread together with its thread-local
            // variables, this many bytes from the thread pointer, before the thread begins,
            // and frees it after it has ended.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                asm!(
                    "mov {value:e}, dword ptr fs:[{area} + {field}]",
                    area = in(reg) area,
                    value = lateout(reg) value,
                    field = const OFFSET,
                    options(nostack, preserves_flags, readonly)
                );
            }
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            unsafe {
                asm!(
                    "mrs {value:x}, tpidr_el0",
                    "add {value:x}, {value:x}, {area}",
                    "ldr {value:w}, [{value:x}, #{field}]",
                    area = in(reg) area,
                    value = out(reg) value,
                    field = const OFFSET,
                    options(nostack, preserves_flags, readonly)
                );
            }
            value as usize
        }
    }

    /// Where a variable of the C library lies, if this one has it.
    fn symbol(name: &CStr) -> Option<NonNull<libc::c_void>> {
        // SAFETY: the name ends with a zero byte.
        NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64",
    not(miri)
)))]
mod none {
    /// There are none, and so no value of this.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::per_core) enum Areas {}

    impl Areas {
        pub(in crate::per_core) fn find() -> Option<Self> {
            None
        }

        pub(in crate::per_core) fn number(self) -> usize {
            match self {}
        }

        pub(in crate::per_core) fn exact_number(self) -> usize {
            match self {}
        }
    }
}
