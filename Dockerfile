# SPDX-License-Identifier: MIT
# docker build -t sluice .
# docker run -p 60000:60000 -v sluice:/var/lib/sluice sluice --cluster-id=16 --shard=0

FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
    gcc cmake ninja-build pkg-config \
    liburcu-dev libck-dev libssl-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler \
    libjemalloc-dev libuv1-dev libhwloc-dev libsqlite3-dev libmicrohttpd-dev libjansson-dev \
    libwslay-dev libhttp-parser-dev libxxhash-dev libcmocka-dev python3
COPY . /source
RUN cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
        -DCMAKE_INSTALL_SYSCONFDIR=/etc \
    && cmake --build /build --target installed \
    && DESTDIR=/image cmake --install /build

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
    ca-certificates liburcu8 libck0 libssl3 libjemalloc2 libuv1 libhwloc15 libsqlite3-0 \
    libmicrohttpd12 libjansson4 libwslay1 libhttp-parser2.9 libxxhash0 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /var/lib/sluice --create-home --shell /usr/sbin/nologin sluice
COPY --from=build /image/usr/bin/sluice /image/usr/bin/flood /usr/bin/
USER sluice
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice
EXPOSE 60000/tcp 8000/tcp 8645/tcp 8008/tcp
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/sluice", "run"]
