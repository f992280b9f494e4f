# cutrace with a compiler for whole programs: for macOS, and for CI without Python.
#
#     docker build -t cutrace .
#     docker run --rm -v "$PWD:/work" cutrace analyze scale.cu
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ git libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY . /opt/cutrace
RUN python -m pip install --no-cache-dir "/opt/cutrace[programs]" \
    && python /opt/cutrace/scripts/slim.py /usr/local
WORKDIR /work
ENTRYPOINT ["cutrace"]
CMD ["--help"]
