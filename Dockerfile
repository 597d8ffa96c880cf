# The image: one static binary, the authorities that it trusts, and nothing else.
# `make image` lays the two files out and builds it; goreleaser does the same for
# every platform.
FROM scratch
ARG TARGETPLATFORM
COPY out/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY $TARGETPLATFORM/eppctl /usr/bin/eppctl
USER 65532:65532
# That user has no home. Mount a folder that it can write to at /var/lib/eppctl.
ENV HF_HOME=/var/lib/eppctl/hf
# ext_proc, gRPC health, metrics. The admin API listens on loopback.
EXPOSE 9002 9003 9090
ENTRYPOINT ["/usr/bin/eppctl"]
