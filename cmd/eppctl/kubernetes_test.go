package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/eppctl/eppctl/internal/serve"
)

// The parts of the manifests, no more than they use: anything else is a slip of the pen.
type (
	metadata struct {
		Name   string
		Labels map[string]string
	}
	selector   struct{ MatchLabels map[string]string }
	kustomized struct {
		APIVersion, Kind string
		Resources        []string
		ConfigMaps       []struct {
			Name  string
			Files []string
		} `json:"configMapGenerator"`
		GeneratorOptions struct{ DisableNameSuffixHash bool }
		Images           []struct{ Name, NewName, NewTag string }
	}
	service struct {
		APIVersion, Kind string
		Metadata         metadata
		Spec             struct {
			Selector map[string]string
			Ports    []struct {
				Name, TargetPort string
				Port             int
			}
		}
	}
	budget struct {
		APIVersion, Kind string
		Metadata         metadata
		Spec             struct {
			MaxUnavailable int
			Selector       selector
		}
	}
	deployment struct {
		APIVersion, Kind string
		Metadata         metadata
		Spec             struct {
			Replicas int
			Selector selector
			Strategy struct {
				RollingUpdate struct{ MaxUnavailable, MaxSurge int }
			}
			Template struct {
				Metadata metadata
				Spec     podSpec
			}
		}
	}
	podSpec struct {
		AutomountServiceAccountToken  bool
		EnableServiceLinks            bool
		TerminationGracePeriodSeconds int
		TopologySpreadConstraints     []struct {
			MaxSkew                        int
			TopologyKey, WhenUnsatisfiable string
			LabelSelector                  selector
		}
		SecurityContext struct {
			RunAsNonRoot                   bool
			RunAsUser, RunAsGroup, FSGroup int
			SeccompProfile                 struct{ Type string }
		}
		InitContainers, Containers []container
		Volumes                    []volume
	}
	volume struct {
		Name      string
		ConfigMap struct{ Name string }
		EmptyDir  struct{ SizeLimit string }
	}
	container struct {
		Name, Image, RestartPolicy string
		Args                       []string
		Env                        []struct {
			Name      string
			ValueFrom struct {
				ResourceFieldRef struct{ ContainerName, Resource string }
				SecretKeyRef     struct {
					Name, Key string
					Optional  bool
				}
			}
		}
		Ports []struct {
			Name          string
			ContainerPort int
		}
		StartupProbe, LivenessProbe, ReadinessProbe probe
		Lifecycle                                   struct {
			PreStop struct{ Sleep struct{ Seconds int } }
		}
		Resources       struct{ Requests, Limits map[string]string }
		SecurityContext struct {
			AllowPrivilegeEscalation, ReadOnlyRootFilesystem bool
			Capabilities                                     struct{ Drop []string }
		}
		VolumeMounts []struct {
			Name, MountPath string
			ReadOnly        bool
		}
	}
	probe struct {
		GRPC struct {
			Port    int
			Service string
		}
		TCPSocket                       struct{ Port string }
		PeriodSeconds, FailureThreshold int
	}
)

const manifests = "../../deploy/kubernetes"

func readManifest(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifests, name))
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// The manifests fit each other: names, labels, ports, mounts.
func TestKubernetesManifests(t *testing.T) {
	var k kustomized
	var d deployment
	var s service
	var b budget
	readManifest(t, "kustomization.yaml", &k)
	readManifest(t, "deployment.yaml", &d)
	readManifest(t, "service.yaml", &s)
	readManifest(t, "poddisruptionbudget.yaml", &b)
	for _, f := range append(slices.Clone(k.Resources), k.ConfigMaps[0].Files...) {
		_, file, found := strings.Cut(f, "=")
		if !found {
			file = f
		}
		if _, err := os.Stat(filepath.Join(manifests, file)); err != nil {
			t.Errorf("kustomization.yaml: %v", err)
		}
	}
	pod := d.Spec.Template
	for what, labels := range map[string]map[string]string{
		"the Deployment": d.Spec.Selector.MatchLabels, "the Service": s.Spec.Selector, "the budget": b.Spec.Selector.MatchLabels,
		"the spread": pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
	} {
		for key, value := range labels {
			if len(labels) == 0 || pod.Metadata.Labels[key] != value {
				t.Errorf("%s selects %v, the pods have %v", what, labels, pod.Metadata.Labels)
			}
		}
	}
	if d.Spec.Replicas-b.Spec.MaxUnavailable < 1 {
		t.Errorf("%d replicas, of which %d may go", d.Spec.Replicas, b.Spec.MaxUnavailable)
	}
	x := pod.Spec.SecurityContext
	if !x.RunAsNonRoot || x.RunAsUser != 65532 || x.FSGroup != x.RunAsGroup || x.SeccompProfile.Type != "RuntimeDefault" || pod.Spec.AutomountServiceAccountToken {
		t.Errorf("security context %+v", x)
	}
	side, envoy := pod.Spec.InitContainers[0], pod.Spec.Containers[0]
	for _, c := range []container{side, envoy} {
		if y := c.SecurityContext; y.AllowPrivilegeEscalation || !y.ReadOnlyRootFilesystem || !slices.Equal(y.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("%s: security context %+v", c.Name, y)
		}
		if c.Resources.Requests["cpu"] == "" || c.Resources.Limits["memory"] == "" {
			t.Errorf("%s: resources %+v", c.Name, c.Resources)
		}
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(pod.Spec.Volumes, func(v volume) bool {
				return v.Name == m.Name && (v.ConfigMap.Name == "" || v.ConfigMap.Name == k.ConfigMaps[0].Name)
			}) {
				t.Errorf("%s mounts %s, which no volume is", c.Name, m.Name)
			}
		}
	}
	if side.RestartPolicy != "Always" || k.Images[0].Name != side.Image {
		t.Errorf("sidecar: restart policy %q, image %q", side.RestartPolicy, side.Image)
	}
	if http := envoy.Ports[0]; s.Spec.Ports[0].TargetPort != http.Name || envoy.ReadinessProbe.TCPSocket.Port != http.Name {
		t.Errorf("the Service goes to port %q, the probe to %q, Envoy's is %q", s.Spec.Ports[0].TargetPort, envoy.ReadinessProbe.TCPSocket.Port, http.Name)
	}
	c, err := serve.LoadConfig(filepath.Join(manifests, "eppctl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if grace := time.Duration(pod.Spec.TerminationGracePeriodSeconds-envoy.Lifecycle.PreStop.Sleep.Seconds) * time.Second; grace <= c.Drain {
		t.Errorf("serve has %v to drain, and wants %v", grace, c.Drain)
	}
	version, err := os.ReadFile("../../scripts/envoy.sh")
	if err != nil {
		t.Fatal(err)
	}
	if want := regexp.MustCompile(`(?m)^version=(.*)$`).FindSubmatch(version); !strings.HasSuffix(envoy.Image, "-v"+string(want[1])) {
		t.Errorf("Envoy's image is %s, tests run %s", envoy.Image, want[1])
	}
}

// The bootstrap is what envoy-config prints for the same files and ports.
func TestKubernetesBootstrap(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(manifests, "envoy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	code, got, _ := try(nil, nil, "envoy-config")
	if code != exitOK || got != string(want) {
		t.Errorf("deploy/kubernetes/envoy.yaml is not what envoy-config prints: eppctl envoy-config > deploy/kubernetes/envoy.yaml")
	}
	var d deployment
	readManifest(t, "deployment.yaml", &d)
	port := d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort
	if !strings.Contains(got, "port_value: "+strconv.Itoa(port)+"}") {
		t.Errorf("Envoy listens nowhere at %d", port)
	}
	c, err := serve.LoadConfig(filepath.Join(manifests, "eppctl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, "path: "+strconv.Quote(c.Envoy.EndpointsFile)) {
		t.Errorf("Envoy does not read %s", c.Envoy.EndpointsFile)
	}
}

// The sidecar starts as its manifest says, but for where its files and ports are, and
// answers the probes there.
func TestKubernetesSidecar(t *testing.T) {
	var d deployment
	readManifest(t, "deployment.yaml", &d)
	side := d.Spec.Template.Spec.InitContainers[0]
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join(manifests, "eppctl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("/var/lib/eppctl"), []byte(dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, facts, errs := try(nil, nil, "check", "--config-only", "--config", file); code != exitOK {
		t.Errorf("check: code %d\n%s%s", code, facts, errs)
	}
	args := []string{"eppctl"}
	for _, a := range side.Args {
		args = append(args, strings.Replace(a, "/etc/eppctl/config.yaml", file, 1))
	}
	const any = "127.0.0.1:0"
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Args = append(args, "--ext-proc-addr", any, "--health-addr", any, "--metrics-addr", any, "--admin-addr", "")
	p.start(t)
	at := p.line(t, "listening")
	c, err := serve.LoadConfig(filepath.Join(manifests, "eppctl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for addr, port := range map[string]int{c.Listen.Health: side.Ports[0].ContainerPort, c.Listen.Metrics: side.Ports[1].ContainerPort} {
		if _, is, _ := net.SplitHostPort(addr); is != strconv.Itoa(port) {
			t.Errorf("serve listens at %s, the manifest has port %d", addr, port)
		}
	}
	conn, err := grpc.NewClient(at["health"].(string), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, pr := range []probe{side.StartupProbe, side.LivenessProbe} {
		if pr.GRPC.Port != side.Ports[0].ContainerPort {
			t.Errorf("the probe of %s asks port %d", pr.GRPC.Service, pr.GRPC.Port)
		}
		// Nobody answers at the names of these engines: it is ready all the same.
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			r, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: pr.GRPC.Service})
			cancel()
			if err == nil && r.GetStatus() == healthpb.HealthCheckResponse_SERVING {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("probe %s: %v %v", pr.GRPC.Service, r.GetStatus(), err)
			}
		}
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
