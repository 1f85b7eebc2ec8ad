# syntax=docker/dockerfile:1
# The server in a distroless image: no shell, not root, 40 MB beside the base.
#
#     docker build -t messaging .
#     docker run --rm -p 127.0.0.1:8080:8080 messaging dev --listen 0.0.0.0:8080
#
# For a server that stays see packaging/compose.yaml and docs/install.md.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist -p messaging-cli --features s3 \
    && install -D -m 0755 target/dist/messaging /out/usr/bin/messaging \
    && install -d -m 0700 /out/data

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /out/usr/bin/messaging /usr/bin/messaging
COPY --from=build --chown=65532:65532 /out/data /data
COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/messaging/
ENV MESSAGING_DATA=/data \
    MESSAGING_LISTEN=0.0.0.0:8080 \
    MESSAGING_LOG_FORMAT=json
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
# The server's own answer: it is 503 while the database cannot be written.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["/usr/bin/messaging", "health", "get", "--url", "http://127.0.0.1:8080/v1"]
ENTRYPOINT ["/usr/bin/messaging"]
CMD ["serve"]
