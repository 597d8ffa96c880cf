package bpe

import "syscall"

const madvCollapse = 25 // <linux/mman.h>, since Linux 6.1

// adviseHuge asks for huge pages: of what is not there yet when it is first written,
// of what is there (memory that the runtime uses again) at once. A system without them
// says no, which changes nothing.
func adviseHuge(b []byte) {
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE)
	_ = syscall.Madvise(b, madvCollapse)
}
