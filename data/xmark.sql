-- Five queries of XMark (Schmidt et al., VLDB 2002) over four streams of one document, which is read once for all.

CREATE TABLE person USING xmark OPTIONS (path '${SITE}', stream 'person');
CREATE TABLE item USING xmark OPTIONS (path '${SITE}', stream 'item');
CREATE TABLE bidder USING xmark OPTIONS (path '${SITE}', stream 'bidder');
CREATE TABLE closed_auction USING xmark OPTIONS (path '${SITE}', stream 'closed_auction');

CREATE TABLE q2 USING punctuated_xml OPTIONS (path '${OUT}/q2', rowTag 'row');
CREATE TABLE q5 USING punctuated_xml OPTIONS (path '${OUT}/q5', rowTag 'row');
CREATE TABLE q8 USING punctuated_xml OPTIONS (path '${OUT}/q8', rowTag 'row');
CREATE TABLE q14 USING punctuated_xml OPTIONS (path '${OUT}/q14', rowTag 'row');
CREATE TABLE q20 USING punctuated_xml OPTIONS (path '${OUT}/q20', rowTag 'row');

-- 2: the first increase of each open auction
INSERT INTO q2 SELECT open_auction, increase FROM bidder WHERE position = 1;

-- 5: how many sold items cost at least 40
INSERT INTO q5 SELECT COUNT(*) AS sold FROM closed_auction WHERE price >= 40;

-- 8: how many items each person has bought
INSERT INTO q8 SELECT p.name, p.id, COUNT(c.itemref) AS bought
FROM person p LEFT JOIN closed_auction c ON c.buyer = p.id GROUP BY p.name, p.id;

-- 14: the items whose description speaks of gold
INSERT INTO q14 SELECT name FROM item WHERE description LIKE '%gold%';

-- 20: customers by income
INSERT INTO q20 SELECT CASE WHEN income >= 100000 THEN 'preferred' WHEN income >= 30000 THEN 'standard'
  WHEN income IS NULL THEN 'na' ELSE 'challenge' END AS customers, COUNT(*) AS persons FROM person GROUP BY customers;
