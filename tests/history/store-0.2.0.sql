BEGIN TRANSACTION;
CREATE TABLE document(
        id integer primary key, project integer not null, name text not null,
        text blob not null, place text not null, unique(project, name, text, place));
INSERT INTO "document" VALUES(1,1,'d0',X'A31C29B2091562A6DCBF9FEC7E2C021F','["s", 0, 9]');
INSERT INTO "document" VALUES(2,1,'d1',X'','');
INSERT INTO "document" VALUES(3,1,'d2',X'','');
INSERT INTO "document" VALUES(4,1,'d3',X'','');
CREATE TABLE gold(
        project integer, query text, version integer, body text not null,
        primary key(project, query, version)) without rowid;
INSERT INTO "gold" VALUES(1,'q0',1,'{"documents": {"q0": {"d1": 2.0}}, "name": "gold", "order": ["q0"]}');
INSERT INTO "gold" VALUES(1,'q1',1,'{"documents": {"q1": {"d3": 1.0}}, "name": "gold", "order": ["q1"]}');
CREATE TABLE label(
        id integer primary key, project integer not null, version integer not null,
        at text not null, query text not null, document text, text text, grade real,
        verdict text not null, who text not null, why text not null);
INSERT INTO "label" VALUES(1,1,2,'2026-11-16T01:00:00+00:00','q1','d2',NULL,1.0,'grade','ann','It says so.');
CREATE TABLE project(
        id integer primary key, name text not null unique,
        version integer not null default 0);
INSERT INTO "project" VALUES(1,'default',2);
CREATE TABLE query(
        project integer, name text, question text, tags text not null,
        fingerprint text, gold text, primary key(project, name)) without rowid;
INSERT INTO "query" VALUES(1,'q0','Which grain is rye?','["grain"]','f1677d06cf3c0d2c','{"documents": {"q0": {"d1": 2.0}}, "name": "gold", "order": ["q0"]}');
INSERT INTO "query" VALUES(1,'q1',NULL,'[]','e94be802f8d4e5d9','{"documents": {"q1": {"d2": 1.0, "d3": 1.0}}, "name": "gold", "order": ["q1"], "sources": {"q1": {"d2": "human:ann"}}}');
CREATE TABLE query_set(
        id integer primary key, project integer not null, digest text not null,
        ids text not null, unique(project, digest));
INSERT INTO "query_set" VALUES(1,1,'2c2ef6c4b6927bb761de987f0272bf70','["q0", "q1"]');
CREATE TABLE run(
        id integer primary key, project integer not null, query_set integer not null,
        digest text not null, name text not null, commit_id text not null,
        branch text not null, at text not null, depth integer not null,
        documents blob not null, scores blob not null, ranks blob not null,
        cutoffs blob not null, scoring text not null, head text not null,
        unique(project, digest));
INSERT INTO "run" VALUES(1,1,1,'eaa86951c9f252fb220d0a3c47cdb998','dense','abc','main','2026-11-16T00:00:00+00:00',2,X'01000000020000000300000004000000',X'CDCCCCCCCCCCEC3F000000000000E03F000000000000F87F000000000000F87F',X'',X'','[{"undefined": "skip", "missing": "zero", "extra": "ignore", "duplicates": "first", "ties": "trec", "precision": "double", "judged_only": false, "force": false, "identical": "keep"}, "id", {"rr": "mean", "ndcg@5": "mean"}]','{"run": "dense", "gold": "samples", "queries": [], "columns": {"rr": {"metric": "rr", "scores": [], "undefined": 0, "binary": false, "bounds": [0.0, 1.0], "average": "mean", "higher_is_better": true}, "ndcg@5": {"metric": "ndcg@5", "scores": [], "undefined": 0, "binary": false, "bounds": [0.0, 1.0], "average": "mean", "higher_is_better": true}}, "missing": [false, false], "policies": {"undefined": "skip", "missing": "zero", "extra": "ignore", "duplicates": "first", "ties": "trec", "precision": "double", "judged_only": false, "force": false, "identical": "keep"}, "matchers": {"rr": "id", "ndcg@5": "id"}, "default_matcher": "id", "provenance": {"karat": "0.2.0", "run": "samples", "gold": "samples"}, "labelled_by": {"human": 2}}');
CREATE TABLE score(
        run integer, metric text, mean real, value blob not null,
        version integer not null, frozen text not null, primary key(run, metric));
INSERT INTO "score" VALUES(1,'rr',0.75,X'000000000000E03F000000000000F03F',2,'');
INSERT INTO "score" VALUES(1,'ndcg@5',8.15464876785728765007e-01,X'3E3535989330E43F000000000000F03F',2,'');
CREATE TABLE text(hash blob primary key, body blob not null) without rowid;
INSERT INTO "text" VALUES(X'A31C29B2091562A6DCBF9FEC7E2C021F',X'789C0BAA4C55C82C564854482F4ACCCCD303002892050D');
CREATE TABLE token(
        hash text primary key, project integer, name text not null,
        role text not null, at text not null) without rowid;
INSERT INTO "token" VALUES('5bd1b7d6848b0bb2e39d9950369c6aba001ab3b789233001daffea52bce42ebd',NULL,'ann','read','2026-11-16 13:12:50');
CREATE INDEX label_of_query on label(project, query);
CREATE INDEX run_of_set on run(query_set);
COMMIT;
