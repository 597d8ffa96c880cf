//go:build unix

package modelsource

import (
	"os"
	"syscall"
)

// fileNumber tells files apart that have one name, size and time: one was renamed
// over the other.
func fileNumber(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino)
	}
	return 0
}
