# SPDX-License-Identifier: MIT
# For Homebrew on Linux; it has not been run. dt does not build on macOS: lib/base/system.c.
# HOMEBREW_DT_SOURCE names a clone: brew install --HEAD --formula share/packaging/homebrew/dt-tools.rb
class DtTools < Formula
  desc "Raw text to a trained, measured language model"
  homepage "file:///usr/local/share/dt"
  license "MIT"
  head ENV.fetch("HOMEBREW_DT_SOURCE", Dir.pwd), using: :git

  depends_on "json-c"
  depends_on "libyaml"
  depends_on :linux
  depends_on "nettle"
  depends_on "onednn"
  depends_on "openssl@3"
  depends_on "xxhash"
  depends_on "zstd"
  uses_from_macos "zlib"

  def install
    system "make", "DEPS=0", "CUDA=0", "MPI=0", "DATA=0", "CURL=0"
    system "make", "DEPS=0", "CUDA=0", "MPI=0", "DATA=0", "CURL=0", "PREFIX=#{prefix}", "install"
  end

  test do
    system bin/"dt-synth", "-n", "10", "-o", testpath/"stories.jsonl"
    assert_path_exists testpath/"stories.jsonl"
  end
end
