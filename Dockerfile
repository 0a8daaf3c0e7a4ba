# A small image with nothing in it but the program: static, without a shell, without root.
# Build it from the root of the repository: docker build --tag podscale:0.1.0 .
FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev gcc make perl
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
COPY crates crates
RUN cargo build --locked --profile dist --package podscale --bin podscale \
 && strip target/dist/podscale

FROM scratch
COPY --from=build /source/target/dist/podscale /podscale
USER 65532:65532
# Memory that was needed for a moment, such as for a large list, goes back at once.
ENV MIMALLOC_PURGE_DELAY=0
EXPOSE 9090
ENTRYPOINT ["/podscale"]
CMD ["run"]
