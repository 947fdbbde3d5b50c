-- Who in Oregon, Idaho or California sells in category 10, and in which auctions.
-- NEXMark, Query 3, as nexmark/nexmark puts it for Flink.
-- An auction waits until its seller is there (person.id is unique), a person until they sell nothing any more
-- (auction.seller): that may be years, and no watermark bounds this join.
-- Verdict, followed: answers at once, keeps what is open.

CREATE TABLE person (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, dateTime TIMESTAMP,
  extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/person.xml', rowTag 'person',
  schemes 'id; dateTime prefix', maxBytesPerSlice '10m');

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

SELECT P.name, P.city, P.state, A.id
FROM auction A JOIN person P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');
