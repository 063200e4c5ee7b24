/* SPDX-License-Identifier: MIT */
#include "kernels.h"

#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "emulator.h"
#include "profile.h"
#include "settings.h"

namespace
{
std::string demangled(const std::string &name)
{
    std::unique_ptr<char, void (*)(void *)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr), free);
    return text ? text.get() : name;
}

typedef std::map<std::string, emulator::compiled_kernel> kernel_list;

/* The kernels for this GPU, by their names. */
kernel_list read_list(const char *path)
{
    kernel_list list;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        emulator::compiled_kernel k;
        unsigned capability, stack;
        std::string name;
        if (!(words >> capability >> k.registers >> k.threads >> k.shared >> stack >> name))
            emulator::stop("%s does not list kernels: %s", path, line.c_str());
        if (capability == emulator::profile().capability)
            list[demangled(name)] = k;
    }
    if (list.empty())
        emulator::stop("%s has no kernel for sm_%u", path, emulator::profile().capability);
    return list;
}

/* The name of a function that may be static: dladdr knows the others only. */
std::string name_of(const void *function)
{
    Dl_info info;
    if (!dladdr(function, &info))
        emulator::stop("a kernel at an unknown place");
    std::ifstream file(info.dli_fname, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    const char *elf = bytes.data();
    const auto *header = reinterpret_cast<const Elf64_Ehdr *>(elf);
    const auto *sections = reinterpret_cast<const Elf64_Shdr *>(elf + header->e_shoff);
    const auto place =
        (uintptr_t)function - (header->e_type == ET_DYN ? (uintptr_t)info.dli_fbase : (uintptr_t)0);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const auto *symbols = reinterpret_cast<const Elf64_Sym *>(elf + sections[i].sh_offset);
        for (size_t n = 0; n < sections[i].sh_size / sizeof *symbols; n++)
            if (symbols[n].st_value == place && ELF64_ST_TYPE(symbols[n].st_info) == STT_FUNC)
                return elf + sections[sections[i].sh_link].sh_offset + symbols[n].st_name;
    }
    emulator::stop("a kernel without a name, in %s", info.dli_fname);
}
} // namespace

const emulator::compiled_kernel *emulator::compiled(const void *kernel)
{
    static std::map<const void *, const compiled_kernel *> found;
    if (settings().kernels[0] == 0)
        return nullptr;
    static const kernel_list list = read_list(settings().kernels);
    auto known = found.find(kernel);
    if (known != found.end())
        return known->second;
    const std::string name = demangled(name_of(kernel));
    auto entry = list.find(name);
    if (entry == list.end())
        stop("%s has no kernel %s", settings().kernels, name.c_str());
    return found[kernel] = &entry->second;
}
