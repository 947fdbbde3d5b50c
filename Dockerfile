# xmlstream as a container: docker build -t xmlstream . && docker run --rm -v "$PWD/data:/data" xmlstream explain /data/warehouse.sql -D SENSORS=/data
# Linted by hadolint; the machines this project is developed on cannot build it, so it is untested.
FROM python:3.11-slim-bookworm AS build
WORKDIR /build
RUN python -m venv /opt/xmlstream
COPY pyproject.toml requirements.lock README.md LICENSE ./
# setuptools first, from the lock: with it pyspark and this project are built, and with nothing newer. There is one lock,
# so what the tests need comes along.
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN awk '/^setuptools==/,/# via/' requirements.lock \
    | /opt/xmlstream/bin/pip install --no-cache-dir --require-hashes --requirement /dev/stdin \
    && /opt/xmlstream/bin/pip install --no-cache-dir --require-hashes --no-build-isolation --use-pep517 --requirement requirements.lock
COPY xmlstream xmlstream
COPY operators operators
COPY sources sources
COPY punct_ns punct_ns
RUN /opt/xmlstream/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim-bookworm
# Debian's Java moves with its security updates, and a version that is pinned would be gone with the next one.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 xmlstream
COPY --from=build /opt/xmlstream /opt/xmlstream
ENV PATH=/opt/xmlstream/bin:$PATH
USER 1000
WORKDIR /home/xmlstream
# Signals reach the query, which ends with the slice in hand, and its processes have someone to reap them.
ENTRYPOINT ["tini", "-g", "--", "xmlstream"]
CMD ["--help"]
