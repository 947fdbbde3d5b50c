-- Queries of XMark (Schmidt et al., VLDB 2002) over the streams of one document, which is read once for all of them.

CREATE TABLE person USING xmark OPTIONS (path '${SITE}', stream 'person');
CREATE TABLE item USING xmark OPTIONS (path '${SITE}', stream 'item');
CREATE TABLE bidder USING xmark OPTIONS (path '${SITE}', stream 'bidder');
CREATE TABLE closed_auction USING xmark OPTIONS (path '${SITE}', stream 'closed_auction');

CREATE TABLE q1 USING punctuated_xml OPTIONS (path '${OUT}/q1', rowTag 'row');
CREATE TABLE q2 USING punctuated_xml OPTIONS (path '${OUT}/q2', rowTag 'row');
CREATE TABLE q5 USING punctuated_xml OPTIONS (path '${OUT}/q5', rowTag 'row');
CREATE TABLE q8 USING punctuated_xml OPTIONS (path '${OUT}/q8', rowTag 'row');
CREATE TABLE q9 USING punctuated_xml OPTIONS (path '${OUT}/q9', rowTag 'row');
CREATE TABLE q13 USING punctuated_xml OPTIONS (path '${OUT}/q13', rowTag 'row');
CREATE TABLE q14 USING punctuated_xml OPTIONS (path '${OUT}/q14', rowTag 'row');
CREATE TABLE q17 USING punctuated_xml OPTIONS (path '${OUT}/q17', rowTag 'row');
CREATE TABLE q19 USING punctuated_xml OPTIONS (path '${OUT}/q19', rowTag 'row');
CREATE TABLE q20 USING punctuated_xml OPTIONS (path '${OUT}/q20', rowTag 'row');

-- 1: the name of person0
INSERT INTO q1 SELECT name FROM person WHERE id = 0;

-- 2: the first increase of each open auction
INSERT INTO q2 SELECT open_auction, increase FROM bidder WHERE position = 1;

-- 5: how many sold items cost at least 40
INSERT INTO q5 SELECT COUNT(*) AS sold FROM closed_auction WHERE price >= 40;

-- 8: how many items each person has bought
INSERT INTO q8 SELECT p.name, p.id, COUNT(c.itemref) AS bought
FROM person p LEFT JOIN closed_auction c ON c.buyer = p.id GROUP BY p.name, p.id;

-- 9: who has bought which items in Europe
INSERT INTO q9 SELECT p.name, i.name AS item
FROM person p JOIN closed_auction c ON c.buyer = p.id JOIN item i ON i.id = c.itemref WHERE i.region = 'europe';

-- 13: the items of Australia, with their descriptions
INSERT INTO q13 SELECT name, description FROM item WHERE region = 'australia';

-- 14: the items whose description speaks of gold
INSERT INTO q14 SELECT name FROM item WHERE description LIKE '%gold%';

-- 17: who has no homepage
INSERT INTO q17 SELECT name FROM person WHERE homepage IS NULL;

-- 19: all items, ordered by their location
INSERT INTO q19 SELECT name, location FROM item ORDER BY location;

-- 20: customers by income
INSERT INTO q20 SELECT CASE WHEN income >= 100000 THEN 'preferred' WHEN income >= 30000 THEN 'standard'
  WHEN income IS NULL THEN 'na' ELSE 'challenge' END AS customers, COUNT(*) AS persons FROM person GROUP BY customers;
