"""The programs of the guide's page on clients, as they stand there, against a server.

    page.py REDIS_PORT HTTP_PORT

Each prints IDs, one a line, and no ID comes twice. The clients of Redis are those that the
other tests here use.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "src/guide/serve/clients.md"
REDIS, HTTP = sys.argv[1:]

# The import stays in front of it.
JAVA = """class Ids { public static void main(String[] none) throws Exception {
%s}}
"""
GO = """package main
import ("bufio"; "fmt"; "net/http")
func main() {
%s}
"""

# How a program of this language is run, and what is around it; its IDs.
LANGUAGES = {
    "python": ([sys.executable], "ids.py", "%s", 4),
    "js": (["node"], "ids.mjs", "%s", 4),
    "php": (["php"], "ids.php", "%s", 4),
    "java": (["java"], "Ids.java", JAVA, 3),
    "go": (["go", "run"], "ids.go", GO, 3),
    "sh": (["bash", "-euo", "pipefail"], "ids.sh", "%s", 7),
}

def main():
    page = PAGE.read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == list(LANGUAGES), "a block, or a language, is new"
    ids = []
    with tempfile.TemporaryDirectory(dir=HERE) as work:
        for language, program in blocks:
            command, name, around, count = LANGUAGES[language]
            here = program.replace("localhost:6379", f"localhost:{REDIS}")
            here = re.sub(r"\b6379\b", REDIS, here).replace("localhost:7464", f"localhost:{HTTP}")
            here = here.replace("redis-cli ", f"redis-cli -p {REDIS} ")
            assert here != program, f"{language}: it asks no server"
            file = Path(work, name)
            imports, rest = re.match(r"((?:import java[^\n]*\n)*)(.*)", here, re.DOTALL).groups()
            file.write_text(imports + around % rest)
            done = subprocess.run(
                [*command, file], cwd=work,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
            )
            assert done.returncode == 0, f"{language}: {done.stdout}{done.stderr}"
            lines = done.stdout.split()
            assert len(lines) == count, f"{language}: {done.stdout}{done.stderr}"
            ids += [int(line) for line in lines]
            print(f"{language}: {count} IDs by the program of the page")
    assert len(set(ids)) == len(ids), "an ID came twice"


main()
