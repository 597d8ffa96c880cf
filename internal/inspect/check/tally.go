package check

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

func sum[K comparable](m map[K]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// words lists a tally: "2 frames: 3, 4 frames: 1"; the counts only when there are
// several. What came from outside is cleaned.
func words(m map[string]int) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text := out.Clean(k)
		if len(m) > 1 {
			text += ": " + strconv.Itoa(m[k])
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func sizes(m map[int]int) string {
	text := map[string]int{}
	for size, n := range m {
		text[strconv.Itoa(size)] = n
	}
	return words(text)
}

// count adds one under a key that came from outside, as long as there is room.
func count[K comparable](m map[K]int, key K) {
	if len(m) < maxKeys || m[key] > 0 {
		m[key]++
	}
}
