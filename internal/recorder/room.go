package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// enough is what there has to be room for before a recording that broke off is begun
// again: each beginning may remove the oldest file, which is worth more than a few
// records on a disk that is full again at once.
const enough = 1 << 20

// Room reports why a recording that broke off could not be begun again now; nil = it
// could. Nobody waits for the reader of a pipe.
func (t Target) Room() error {
	if st, err := os.Stat(t.Path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", t.Path)
	}
	f, err := os.CreateTemp(filepath.Dir(t.Path), "."+filepath.Base(t.Path)+".room-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	size := int64(enough)
	if t.RotateSize > 0 {
		size = min(size, t.RotateSize)
	}
	_, err = f.Write(make([]byte, size)) // written, as a file that is only long takes no room
	return errors.Join(err, f.Close())
}
