package serve

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(benchServerEnv); kind != "" {
		benchServer(kind)
		return
	}
	goleak.VerifyTestMain(m)
}
