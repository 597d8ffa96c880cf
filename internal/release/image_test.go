package release

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/eppctl/eppctl/internal/testdata"
)

const repository = "../.."

// patience bounds the waiting; it is never reached in a good run.
const patience = 2 * time.Minute

// program is the path of a program that Debian has.
func program(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(repository, "scripts/debian.sh"), name)
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		t.Fatalf("this test needs %s: %v", name, err)
	}
	return strings.TrimSpace(string(path))
}

// images is a place for images that is the test's own.
type images struct {
	t       *testing.T
	buildah string
	dir     string
}

func newImages(t *testing.T) *images { return &images{t, program(t, "buildah"), t.TempDir()} }

// args are those that need neither a daemon nor a file system of layers.
func (b *images) args(args ...string) []string {
	return append([]string{"--storage-driver", "vfs", "--root", filepath.Join(b.dir, "root"), "--runroot", filepath.Join(b.dir, "run")}, args...)
}

func (b *images) run(args ...string) string {
	b.t.Helper()
	cmd := exec.Command(b.buildah, b.args(args...)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			out = append(out, exit.Stderr...)
		}
		b.t.Fatalf("buildah %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// built is the image of Dockerfile. It asks nobody for anything: its base is
// scratch.
func (b *images) built() (name string) {
	b.t.Helper()
	files := filepath.Join(b.dir, "context")
	// MAKEFLAGS of a make above would hand over its job server.
	layOut := exec.Command("make", "-C", repository, "image-context", "CONTEXT="+files, "MAKEFLAGS=")
	if out, err := layOut.CombinedOutput(); err != nil {
		b.t.Fatalf("make image-context: %v\n%s", err, out)
	}
	name = "eppctl-under-test"
	b.run("build", "--isolation", "chroot", "--platform", "linux/"+runtime.GOARCH, "--tag", name,
		"--file", filepath.Join(repository, "Dockerfile"), files)
	return name
}

type descriptor struct{ Digest string }

// files lists what an image holds, by path; folders are left out.
func (b *images) files(image string) map[string]*tar.Header {
	b.t.Helper()
	dir := filepath.Join(b.dir, "pushed")
	b.run("push", image, "dir:"+dir)
	var manifest struct{ Layers []descriptor }
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	all := map[string]*tar.Header{}
	for _, layer := range manifest.Layers {
		if err := list(filepath.Join(dir, strings.TrimPrefix(layer.Digest, "sha256:")), all); err != nil {
			b.t.Fatalf("layer %s: %v", layer.Digest, err)
		}
	}
	return all
}

func list(layer string, into map[string]*tar.Header) error {
	f, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeDir {
			into["/"+strings.TrimPrefix(h.Name, "/")] = h
		}
	}
}

// The image holds two files, belongs to nobody in particular, and serves.
func TestImage(t *testing.T) {
	b := newImages(t)
	image := b.built()

	files := b.files(image)
	if got, want := slices.Sorted(maps.Keys(files)), []string{"/etc/ssl/certs/ca-certificates.crt", "/usr/bin/eppctl"}; !slices.Equal(got, want) {
		t.Errorf("the image holds %q, want %q", got, want)
	}
	for path, h := range files {
		if h.Mode&0o022 != 0 || h.Mode&0o444 != 0o444 || h.Uid != 0 {
			t.Errorf("%s has mode %o and owner %d", path, h.Mode, h.Uid)
		}
	}
	var inspected struct {
		OCIv1 struct {
			Config struct {
				User         string
				Env          []string
				Entrypoint   []string
				ExposedPorts map[string]struct{}
			}
		}
	}
	if err := json.Unmarshal([]byte(b.run("inspect", "--type", "image", image)), &inspected); err != nil {
		t.Fatal(err)
	}
	c := inspected.OCIv1.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/eppctl"}) {
		t.Errorf("it starts %q as %q", c.Entrypoint, c.User)
	}
	if want := "HF_HOME=/var/lib/eppctl/hf"; !slices.Contains(c.Env, want) { // its user has no home
		t.Errorf("its variables are %q, want %q among them", c.Env, want)
	}
	if got, want := slices.Sorted(maps.Keys(c.ExposedPorts)), []string{"9002/tcp", "9003/tcp", "9090/tcp"}; !slices.Equal(got, want) {
		t.Errorf("it exposes %q, want %q", got, want)
	}
	serves(t, b, image, c.Entrypoint)
}

// serves starts an image as its own user and asks its health port.
func serves(t *testing.T, b *images, image string, entrypoint []string) {
	t.Helper()
	config, state := t.TempDir(), t.TempDir()
	text := "pods: [{name: a, address: '127.0.0.1:1'}]\nenvoy: {endpoints_file: /var/lib/eppctl/endpoints.json}\n"
	if err := os.WriteFile(filepath.Join(config, "config.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o777); err != nil {
		t.Fatal(err)
	}
	container := b.run("from", "--pull-never", image)
	args := append([]string{"run", "--isolation", "chroot", "-v", config + ":/etc/eppctl:ro", "-v", state + ":/var/lib/eppctl", container, "--"}, entrypoint...)
	cmd := exec.Command(b.buildah, b.args(append(args, "serve", "--ext-proc-addr", "127.0.0.1:0", "--health-addr", "127.0.0.2:0",
		"--admin-addr", "", "--metrics-addr", "127.0.0.1:0")...)...)
	var log testdata.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // buildah kills what it runs
		_ = cmd.Wait()                          // which returns when nobody writes to log any more
	})
	health := regexp.MustCompile(`health=(\S+)`)
	var at []string
	for end := time.Now().Add(patience); at == nil; time.Sleep(20 * time.Millisecond) {
		if at = health.FindStringSubmatch(log.String()); at == nil && time.Now().After(end) {
			t.Fatalf("it never listens:\n%s", log.String())
		}
	}
	if err := alive(t, at[1]); err != nil {
		t.Errorf("health: %v\n%s", err, log.String())
	}
	if os.Geteuid() == 0 { // else its users are others outside
		if info, err := os.Stat(filepath.Join(state, "endpoints.json")); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		} else if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 65532 {
			t.Errorf("it runs as user %d", owner)
		}
	}
}

func alive(t *testing.T, addr string) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "liveness"}, grpc.WaitForReady(true))
	if err == nil && r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		err = fmt.Errorf("%s is %s", addr, r.GetStatus())
	}
	return err
}
