package out

import (
	"math"
	"strconv"
)

// Percent writes a share without its sign; 0 and 100 are only what is so, and a sliver
// is no whole percent.
func Percent(share float64) string {
	switch {
	case share <= 0:
		return "0"
	case share < 0.005:
		return "<1"
	case share >= 1:
		return "100"
	}
	return strconv.Itoa(min(int(math.Round(share*100)), 99))
}
