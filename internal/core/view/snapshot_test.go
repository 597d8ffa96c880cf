package view

import "testing"

// A prompt is never counted as more cached than it was, and one cached but for its
// end is among the deepest.
func TestDepthBucket(t *testing.T) {
	for _, tc := range [][3]int{
		{0, 100, 0}, {-1, 100, 0}, {5, 0, 0}, {1, 100, 1}, {10, 100, 1}, {11, 100, 2}, {64, 80, 8}, {90, 100, 9}, {91, 100, 10}, {100, 100, 10}, {200, 100, 10},
	} {
		if got := DepthBucket(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%d of %d tokens: bucket %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}
